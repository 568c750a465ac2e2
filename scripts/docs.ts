/**
 * Writes the generated sections of the documentation. With `--check` it writes nothing, and exits with 1 if a
 * section is outdated. An argument names another root folder.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ERROR_CODES } from '../src/core/error-codes.ts';
import { schemeNames } from '../src/signatures/config.ts';
import { samplesOf } from '../src/signatures/samples.ts';
import { renamedEvents } from '../src/signatures/sources.ts';
import { dashboard } from './ops/dashboard.ts';
import { meterTable } from './ops/meter-table.ts';
import { listMeters } from './ops/meters.ts';
import { renderOptions } from './options-table.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean' } },
});
const root = positionals[0] ?? join(import.meta.dirname, '..');

/** Writes the content between the lines `<!-- name:start -->` and `<!-- name:end -->` of a file. */
function writeSection(path: string, name: string, content: string): void {
  const file = join(root, path);
  const start = `<!-- ${name}:start -->`;
  const end = `<!-- ${name}:end -->`;
  const text = readFileSync(file, 'utf8');
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`${file} has no ${start} followed by ${end}; add both lines`);
  const updated = `${text.slice(0, from)}${start}\n\n${content}\n\n${text.slice(to)}`;
  put(file, text, updated, `the section ${name}`);
}

function writeWhole(path: string, content: string): void {
  const file = join(root, path);
  put(file, existsSync(file) ? readFileSync(file, 'utf8') : '', content, 'it');
}

function put(file: string, before: string, after: string, what: string): void {
  if (before === after) return;
  if (!values.check) {
    writeFileSync(file, after);
    return;
  }
  process.stderr.write(`${file}: ${what} is outdated; run "npm run docs"\n`);
  process.exitCode = 1;
}

const codes = Object.entries<{ status?: number; text: string }>(ERROR_CODES)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([code, { status, text }]) => `| \`${code}\` | ${status ?? ''} | ${text} |`);

writeSection('docs/CONFIGURATION.md', 'options', renderOptions());
writeSection(
  'docs/ERRORS.md',
  'error-codes',
  ['| Code | Status | Meaning and remedy |', '| --- | --- | --- |', ...codes].join('\n'),
);
const renamed = renamedEvents().flatMap(({ scheme, event, names }) =>
  names.map((name) => `| \`${scheme}\` | \`${name}\` | \`${event}\` |`),
);
writeSection(
  'docs/WEBHOOKS.md',
  'renamed-events',
  ["| Scheme | Sender's own name | Name in Portico |", '| --- | --- | --- |', ...renamed].join('\n'),
);
const sampled = schemeNames.flatMap((scheme) => {
  const events = samplesOf(scheme).map(({ event }) => `\`${event}\``);
  return events.length === 0 ? [] : [`| \`${scheme}\` | ${events.join(', ')} |`];
});
writeSection(
  'docs/WEBHOOKS.md',
  'samples',
  ['| Scheme | Events with a sample |', '| --- | --- |', ...sampled].join('\n'),
);
// Only Linux has all meters.
if (process.platform === 'linux') {
  const meters = await listMeters();
  writeSection('docs/OPERATIONS.md', 'meters', meterTable(meters));
  writeWhole('deploy/grafana/portico.json', dashboard(meters));
}
