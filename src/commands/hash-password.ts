import { isUtf8 } from 'node:buffer';
import { hashPassword } from '../http/auth/password-hash.ts';
import { readArguments } from './argv/command-arguments.ts';
import { UsageError } from './argv/usage-error.ts';
import { usages } from './help/usages.ts';
import { note, print } from './terminal/output.ts';
import { readHidden } from './terminal/read-hidden.ts';

/**
 * `portico hash-password`: hashes a password that is typed twice on a terminal, or all of standard input.
 * Resolves to the exit code: 0, or 1 when the user cancelled. Rejects with UsageError.
 */
export async function hashPasswordCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.hashPassword, argv);
  if (args.words.length > 0) {
    throw new UsageError([
      'A password is no argument, where others can see it; type it when asked, or send it to standard input',
    ]);
  }
  const password = process.stdin.isTTY ? await askTwice() : await readAll();
  if (password === undefined) return 1;
  // A Basic header cannot carry others.
  if (!/^\P{Cc}+$/u.test(password)) {
    throw new UsageError(['A password has at least one character, and no control characters']);
  }
  await print(`${await hashPassword(password, args.has('--argon2id') ? 'argon2id' : 'scrypt')}\n`);
  if (process.stdout.isTTY) note('Put it in single quotes in a shell, because of its $.');
  return 0;
}

async function askTwice(): Promise<string | undefined> {
  const [password, again] = (await readHidden('Password: ', 'Again: ')) ?? [];
  if (again !== password) throw new UsageError(['The two are not the same']);
  return password;
}

async function readAll(): Promise<string> {
  const bytes = Buffer.concat(await process.stdin.toArray());
  if (!isUtf8(bytes)) throw new UsageError(['Standard input is not UTF-8 text']);
  return bytes.toString().replace(/\r?\n$/, '');
}
