import { isUtf8 } from 'node:buffer';
import * as readline from 'node:readline';
import { Writable } from 'node:stream';
import { hashPassword } from '../core/passwords.ts';
import { readArguments } from './arguments.ts';
import { type Command, type CommandIo, UsageError } from './command.ts';
import { note, print } from './terminal.ts';

/**
 * `portico hash-password`: hashes a password that is typed twice on a terminal, or all of standard input.
 * Resolves to the exit code: 0, or 1 when the user cancelled. Rejects with UsageError.
 */
export const hashPasswordCommand: Command = {
  usage: {
    topic: 'hash-password',
    words: '[--argon2id]',
    // A password given as an argument gets a specific message.
    maxWords: Number.POSITIVE_INFINITY,
    about:
      'Asks for a password twice, or reads it from standard input, and prints its scrypt hash for MANAGEMENT_PASSWORD.',
    options: { '--argon2id': 'Hashes with Argon2id instead of scrypt.' },
    standalone: true,
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(hashPasswordCommand.usage, argv, io);
  if (args.words.length > 0) {
    throw new UsageError([
      'A password must not be an argument, which other users can see; type it when asked, or pipe it to standard input',
    ]);
  }
  const password = io.stdin.isTTY ? await askTwice(io) : await readAll(io);
  if (password === undefined) return 1;
  // A Basic header can carry no control characters.
  if (!/^\P{Cc}+$/u.test(password)) {
    throw new UsageError(['A password has at least one character, and no control characters']);
  }
  await print(io, `${await hashPassword(password, args.has('--argon2id') ? 'argon2id' : 'scrypt')}\n`);
  if (io.stdout.isTTY) note(io, 'Put it in single quotes in a shell, because of its $.');
  return 0;
}

async function askTwice(io: CommandIo): Promise<string | undefined> {
  const [password, again] = (await readHidden(io, 'Password: ', 'Again: ')) ?? [];
  if (again !== password) throw new UsageError(['The passwords differ']);
  return password;
}

async function readAll({ stdin }: CommandIo): Promise<string> {
  const bytes = Buffer.concat(await stdin.toArray());
  if (!isUtf8(bytes)) throw new UsageError(['Standard input is not UTF-8 text']);
  return bytes.toString().replace(/\r?\n$/, '');
}

/** Asks for lines on a terminal without echoing them; undefined when the user cancels. */
function readHidden(
  { stdin, stderr }: CommandIo,
  ...questions: readonly string[]
): Promise<readonly string[] | undefined> {
  const { promise, resolve } = Promise.withResolvers<readonly string[] | undefined>();
  const muted = new Writable({ write: (_chunk, _encoding, done) => done() });
  // One interface for all questions, because pasted text may answer several. No history, because it would
  // keep a password.
  const terminal = readline.createInterface({ input: stdin, output: muted, terminal: true, historySize: 0 });
  const lines: string[] = [];
  const ask = () => stderr.write(questions[lines.length] ?? '');
  terminal.on('line', (line) => {
    lines.push(line);
    stderr.write('\n');
    if (lines.length < questions.length) ask();
    else terminal.close();
  });
  terminal.on('SIGINT', () => terminal.close());
  // On its own, readline ends at Ctrl+D only on an empty line.
  stdin.on('keypress', (_text, key) => {
    if (key.ctrl && key.name === 'd') terminal.close();
  });
  terminal.once('close', () => {
    const complete = lines.length === questions.length;
    if (!complete) stderr.write('\n');
    resolve(complete ? lines : undefined);
  });
  ask();
  return promise;
}
