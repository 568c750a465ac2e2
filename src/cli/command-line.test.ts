import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { commands, parseCommandLine, UsageError } from './command-line.ts';

test('without a command the service is run', () => {
  assert.deepEqual(parseCommandLine([]), { command: 'serve', rest: [] });
  assert.deepEqual(parseCommandLine(['--rest-port', '1']), { command: 'serve', rest: ['--rest-port', '1'] });
  assert.deepEqual(parseCommandLine(['serve', '--rest-port=1']), {
    command: 'serve',
    rest: ['--rest-port=1'],
  });
});

test('help and version can be asked for in every usual way', () => {
  for (const argv of [['help'], ['--help'], ['-h'], ['serve', '--help'], ['--rest-port', '1', '-h']]) {
    assert.equal(parseCommandLine(argv).command, 'help', argv.join(' '));
  }
  for (const argv of [['version'], ['--version'], ['-V'], ['-v'], ['serve', '-V']]) {
    assert.equal(parseCommandLine(argv).command, 'version', argv.join(' '));
  }
  assert.equal(parseCommandLine(['-V', '-h']).command, 'version');
});

test('another command is a problem, with what is probably meant', () => {
  const problem = (word: string) => {
    try {
      parseCommandLine([word]);
    } catch (error) {
      return error instanceof UsageError ? error.message.split('\n').slice(0, -1) : error;
    }
    return undefined;
  };
  assert.deepEqual(problem('serv'), ['"serv" is not a command; did you mean serve?']);
  assert.deepEqual(problem('frobnicate'), [
    '"frobnicate" is not a command; there are serve, init, health, deliveries, users, send, tokens, migrate, move, backup, restore, hash-password, help, version',
  ]);
  assert.deepEqual(problem('constructor'), [
    '"constructor" is not a command; there are serve, init, health, deliveries, users, send, tokens, migrate, move, backup, restore, hash-password, help, version',
  ]);
  assert.deepEqual(problem(''), [
    '"" is not a command; there are serve, init, health, deliveries, users, send, tokens, migrate, move, backup, restore, hash-password, help, version',
  ]);
});

test('any command line gives a command that exists or a UsageError', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string(), fc.constantFrom('serve', '-h', 'help', '--x', '-V'))),
      (argv) => {
        try {
          const { command, rest } = parseCommandLine(argv);
          assert.ok(commands.some(({ name }) => name === command));
          assert.ok(rest.length <= argv.length);
        } catch (error) {
          assert.ok(error instanceof UsageError, String(error));
        }
      },
    ),
  );
});
