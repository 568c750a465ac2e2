import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shellCommands } from './shell.ts';

const words = (script: string) => shellCommands(script).map((command) => command.words);

test('a command in a line, without its comment; two that are joined are two', () => {
  assert.deepEqual(words('npm ci   # all\n\nnpm ci && npm test'), [
    ['npm', 'ci'],
    ['npm', 'ci'],
    ['npm', 'test'],
  ]);
});

test('quotes hold a word together, over lines too', () => {
  assert.deepEqual(words(`curl -d '{"a": 1}' "b c"`), [['curl', '-d', '{"a": 1}', 'b c']]);
  assert.deepEqual(words(`psql -c "\n SELECT 1"\nls`), [['psql', '-c', '\n SELECT 1'], ['ls']]);
});

test('what is set for a command is no word of it; a document in place is part of its text', () => {
  const [first, second] = shellCommands(`A=1 B='x y' npm start\npsql "$U" <<'SQL'\nDROP x;\nSQL`);
  assert.deepEqual(first?.env, { A: '1', B: 'x y' });
  assert.deepEqual(first?.words, ['npm', 'start']);
  assert.equal(second?.words[0], 'psql');
  assert.match(second?.text ?? '', /DROP x;\nSQL$/);
});
