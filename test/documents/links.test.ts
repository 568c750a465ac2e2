import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { documents, ROOT } from './documents.ts';

/** The anchors of a document, as GitHub makes them of its headings. */
function anchorsOf(text: string): ReadonlySet<string> {
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, '');
  const slugs = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  );
  const named = [...prose.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, name = '']) => name);
  return new Set([...slugs, ...named]);
}

/** What is wrong with a link of a document, or undefined. */
function fault(path: string, text: string, link: string): string | undefined {
  const [target = '', anchor] = link.split('#') as [string, string?];
  const file = target === '' ? path : normalize(join(dirname(path), target));
  const full = join(ROOT, file);
  if (!existsSync(full)) return `${path}: ${link} leads nowhere`;
  if (anchor === undefined || statSync(full).isDirectory()) return undefined;
  const there = target === '' ? text : readFileSync(full, 'utf8');
  return anchorsOf(there).has(anchor) ? undefined : `${path}: ${link}: no such heading`;
}

/** The README of the built package, whose links the test of the package follows. */
const PACKAGED = 'docs/PACKAGE.md';

test('every link from a document to the project leads somewhere', () => {
  const own = documents().filter(({ path }) => path !== PACKAGED);
  const links = own.flatMap(({ path, text }) =>
    [...text.replaceAll(/^ *```.*?^ *```$/gms, '').matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(
      ([, link = '']) => fault(path, text, link),
    ),
  );
  assert.ok(links.length > 100, `${links.length} links were found`);
  assert.deepEqual(
    links.filter((found) => found !== undefined),
    [],
  );
});

test('a link that leads nowhere is seen', () => {
  assert.match(fault('README.md', '', 'docs/NOWHERE.md') ?? '', /leads nowhere/);
  assert.match(fault('README.md', '# A\n', '#b') ?? '', /no such heading/);
  assert.equal(fault('README.md', '# A `b` (c)\n', '#a-b-c'), undefined);
});
