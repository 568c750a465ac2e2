import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SABOTAGES } from './sabotages.ts';

const ROOT = join(import.meta.dirname, '../..');

test('each sabotage fits the sources as they are, and its test exists', () => {
  for (const { promise, file, from, to, test: path } of SABOTAGES) {
    assert.equal(readFileSync(join(ROOT, file), 'utf8').split(from).length, 2, `${promise}: ${file}`);
    assert.notEqual(from, to);
    assert.ok(existsSync(join(ROOT, path)), path);
  }
});
