import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { UsageError } from './command.ts';
import { commands, loadCommand, parseCommandLine } from './command-line.ts';

/** The command that a command line names, and its arguments. */
function read(argv: readonly string[]): readonly string[] {
  const { command, rest } = parseCommandLine(argv);
  return [command.name, ...rest];
}

test('without a command the service is run', () => {
  assert.deepEqual(read([]), ['serve']);
  assert.deepEqual(read(['--rest-port', '1']), ['serve', '--rest-port', '1']);
  assert.deepEqual(read(['serve', '--rest-port=1']), ['serve', '--rest-port=1']);
});

test('help and version can be asked for in every usual way', () => {
  for (const argv of [['help'], ['--help'], ['-h'], ['serve', '--help'], ['--rest-port', '1', '-h']]) {
    assert.equal(read(argv)[0], 'help', argv.join(' '));
  }
  for (const argv of [['version'], ['--version'], ['-V'], ['-v'], ['serve', '-V']]) {
    assert.equal(read(argv)[0], 'version', argv.join(' '));
  }
  assert.equal(read(['-V', '-h'])[0], 'version');
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
    '"frobnicate" is not a command; there are serve, init, health, deliveries, users, import, export, send, listen, tokens, rules, types, migrate, introspect, database, move, backup, restore, hash-password, help, version',
  ]);
  assert.deepEqual(problem('constructor'), [
    '"constructor" is not a command; there are serve, init, health, deliveries, users, import, export, send, listen, tokens, rules, types, migrate, introspect, database, move, backup, restore, hash-password, help, version',
  ]);
  assert.deepEqual(problem(''), [
    '"" is not a command; there are serve, init, health, deliveries, users, import, export, send, listen, tokens, rules, types, migrate, introspect, database, move, backup, restore, hash-password, help, version',
  ]);
});

test('the topic of help must be a command', () => {
  assert.throws(() => parseCommandLine(['help', 'sned']), /"sned" is not a command; did you mean send\?/);
  assert.throws(() => parseCommandLine(['sned', '--help']), /"sned" is not a command; did you mean send\?/);
  assert.deepEqual(read(['send', 'anything', '--x', '-h']), ['help', 'send', 'anything']);
});

test('each command and subcommand has the topic by which it is called', async () => {
  for (const { name, load, parts = {} } of commands) {
    if (load !== undefined) assert.equal((await load()).usage.topic, name);
    for (const [part, load] of Object.entries(parts)) {
      assert.equal((await load()).usage.topic, `${name} ${part}`);
    }
  }
});

test('a command with subcommands needs one of them', async () => {
  const problem = (...argv: readonly string[]) => loadCommand(parseCommandLine(argv));
  await assert.rejects(problem('users'), /^UsageError: users needs one of list, import, export after it\n/);
  await assert.rejects(problem('users', '--json'), /users needs one of list, import, export after it/);
  await assert.rejects(
    problem('users', 'lst'),
    /"lst" is not one of list, import, export; did you mean list\?/,
  );
  await assert.rejects(problem('users', 'constructor'), /"constructor" is not one of/);
  assert.deepEqual((await loadCommand(parseCommandLine(['users', 'list', '--json']))).argv, ['--json']);
});

test('any command line gives a command that exists or a UsageError', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string(), fc.constantFrom('serve', '-h', 'help', '--x', '-V'))),
      (argv) => {
        try {
          const { command, rest } = parseCommandLine(argv);
          assert.ok(commands.includes(command));
          assert.ok(rest.length <= argv.length);
        } catch (error) {
          assert.ok(error instanceof UsageError, String(error));
        }
      },
    ),
  );
});
