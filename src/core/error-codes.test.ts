import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ERROR_CODES } from './error-codes.ts';

const ROOT = join(import.meta.dirname, '../..');
const catalogue = new Map<string, { status?: number; text: string }>(Object.entries(ERROR_CODES));

/** Each place where a source gives an error its code: a member, a variable, or an argument of a constructor. */
const GIVEN =
  /(?:\bcode(?::| =)|new (?:HttpProblem|UserRefusedError)\((?:\s*[\w.]+,)?)\s*'([A-Z][A-Z0-9_]*)'/g;
/** A refusal of a fixed status. */
const REFUSAL = /new HttpProblem\(\s*(\d+),\s*'([A-Z][A-Z0-9_]*)'/g;

const codesIn = (text: string) => [...text.matchAll(GIVEN)].map(([, code = '']) => code);

const sources = globSync('{src,packages}/**/*.ts', { cwd: ROOT })
  .filter((file) => !file.endsWith('.test.ts') && file !== join('src', 'core', 'error-codes.ts'))
  .map((file) => readFileSync(join(ROOT, file), 'utf8'));

test('every code in the sources is in the catalogue', () => {
  const given = new Set(sources.flatMap(codesIn));
  assert.ok(given.size > 60, `${given.size} codes were found`);
  assert.deepEqual(
    // What is refused in the place of the parser, Fastify or the system has their code.
    [...given].filter(
      (code) => !catalogue.has(code) && !/^(?:HPE|FST)_/.test(code) && !(code in constants.errno),
    ),
    [],
  );
});

test('a code is found wherever it can be given', () => {
  const text = `
    readonly code = 'ONE';
    new HttpProblem(400, 'TWO', 'x');
    new HttpProblem(
      status,
      'THREE',
    );
    new GraphQLError('x', { extensions: { code: 'FOUR' } });
    throw new UserRefusedError('FIVE', 'x');`;
  assert.deepEqual(codesIn(text), ['ONE', 'TWO', 'THREE', 'FOUR', 'FIVE']);
});

test('every code of the catalogue is used', () => {
  const unused = [...catalogue.keys()].filter(
    (code) => !sources.some((text) => new RegExp(`'${code}'`).test(text)),
  );
  assert.deepEqual(unused, []);
});

test('a refusal has the status that the catalogue says', () => {
  const refusals = sources.flatMap((text) => [...text.matchAll(REFUSAL)]);
  assert.ok(refusals.length > 30, `${refusals.length} refusals were found`);
  for (const [, status, code = ''] of refusals)
    assert.equal(catalogue.get(code)?.status, Number(status), code);
});

test('no code is in two parts of the catalogue', () => {
  const text = readFileSync(join(import.meta.dirname, 'error-codes.ts'), 'utf8');
  const keys = [...text.matchAll(/^ {2}([A-Z][A-Z0-9_]*): \{/gm)];
  assert.equal(keys.length, catalogue.size);
});

test('every text is one line that a table can hold', () => {
  for (const [code, { text }] of catalogue) assert.match(text, /^[A-Z][^|\n]+\.$/, code);
});
