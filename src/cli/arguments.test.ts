import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readFlags } from '../config/sources.ts';
import { readArguments } from './arguments.ts';
import { type CommandUsage, UsageError } from './command.ts';

const usage: CommandUsage = {
  topic: 'do things',
  words: '<id>',
  maxWords: 1,
  about: '',
  options: { '--status <word>': '', '--secret <text>': '', '--header <text>': '', '--json': '' },
  secret: ['--secret'],
  repeatable: ['--header'],
};
const read = (...argv: readonly string[]) => readArguments(usage, argv, { env: {} });

function problemsOf(...argv: readonly string[]): readonly string[] {
  try {
    read(...argv);
  } catch (error) {
    if (error instanceof UsageError) return error.message.split('\n').slice(0, -1);
    throw error;
  }
  return [];
}

test('options of the command, options of the configuration and words are told apart', () => {
  const args = read(
    '--rest-port',
    '1',
    'id',
    '--status=a=b',
    '--json',
    '--database-url=sqlite:x',
    '--header',
    '-',
  );
  assert.deepEqual(args.words, ['id']);
  assert.deepEqual(args.config, ['--rest-port', '1', '--database-url=sqlite:x']);
  assert.equal(args.value('--status'), 'a=b');
  assert.equal(args.has('--json'), true);
  assert.equal(args.has('--secret'), false);
  assert.equal(args.value('--secret'), undefined);
  assert.equal(args.value('--header'), '-');
  assert.deepEqual(read('--header', 'a', '--header=b').values('--header'), ['a', 'b']);
  assert.equal(read('--status=').value('--status'), '');
});

test('a flag of the configuration takes the word behind it, as it does for the service', () => {
  assert.deepEqual(read('--config', 'id', '--rest-port', '--json').config, ['--config', 'id', '--rest-port']);
  assert.deepEqual(read('--webhook-secret', '-x').config, ['--webhook-secret', '-x']);
});

test('--no-migrate is short for an option of the configuration, as it is for the service', () => {
  const args = read('--json', '--no-migrate', 'id');
  assert.deepEqual(args.words, ['id']);
  assert.equal(readFlags(args.config).found.get('database.migrate')?.value, false);
  assert.deepEqual(
    readFlags(read('--rest-port', '--no-migrate').config),
    readFlags(['--rest-port', '--no-migrate']),
  );
});

test('what is wrong is said, with what may be meant', () => {
  assert.deepEqual(problemsOf('--statsu', '--jsom=1'), [
    '"--statsu" is not an option of do things; did you mean --status?',
    '"--jsom" is not an option of do things; did you mean --json?',
  ]);
  assert.deepEqual(problemsOf('--rest-prot', '1'), [
    '"--rest-prot" is not an option of do things; did you mean --rest-port?',
  ]);
  assert.deepEqual(problemsOf('-x'), ['"-x" is not an option of do things']);
  assert.deepEqual(problemsOf('--status', '--json', '--json=1'), [
    '--status needs a value; write --status=<word> for one that begins with "-"',
    '--json is given more than once',
  ]);
  assert.deepEqual(problemsOf('--json=1'), ['--json takes no value']);
  assert.deepEqual(problemsOf('a', 'b'), [
    'do things takes <id>, no more; put a value with spaces in quotes',
  ]);
});

test('no message shows what may be a piece of a secret', () => {
  for (const argv of [
    ['--secret', '-canary'],
    ['--secret', '--canary'],
    ['--secret', 'my', 'canary', 'canary'],
    ['--secret=canary', '--secret', 'canary'],
    ['--secret', 'my', '-Canary'],
    ['--secert', '--canary'],
    ['--secret', '--', '--canary'],
  ]) {
    const problems = problemsOf(...argv);
    assert.ok(problems.length > 0, argv.join(' '));
    assert.doesNotMatch(problems.join(), /canary/i);
  }
});

test('any words are sorted or refused', () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('--status', '--json', '--rest-port', '--secret', '-', '--', 'id', '--x=1', '--status=1'),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), (argv) => {
      try {
        const { words, config } = readArguments(usage, argv, { env: {} });
        assert.ok(words.length + config.length <= argv.length);
      } catch (error) {
        assert.ok(error instanceof UsageError, String(error));
      }
    }),
  );
});

test('problems in options of the configuration are said together with those of the command', () => {
  assert.deepEqual(problemsOf('--rest-port', '--statsu', 'x'), [
    '"--statsu" is not an option of do things; did you mean --status?',
    '--rest-port needs a value; write --rest-port=<value> for one that begins with "-"',
  ]);
  assert.deepEqual(read('--rest-port').config, ['--rest-port']);
});

test('a dash alone is a value, but never a secret', () => {
  assert.equal(read('--status', '-').value('--status'), '-');
  assert.deepEqual(problemsOf('--secret', '-'), [
    '--secret needs a value; write --secret=<text> for one that begins with "-"',
  ]);
});

test('a command without configuration has none of its options', () => {
  assert.throws(
    () => readArguments({ ...usage, standalone: true }, ['--rest-port=1'], { env: {} }),
    /"--rest-port" is not an option of do things/,
  );
});
