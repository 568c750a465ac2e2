import { isUtf8 } from 'node:buffer';
import { quote } from '../core/quote.ts';
import { didYouMean } from '../core/suggest.ts';
import { hashPassword } from '../http/auth/password-hash.ts';
import { readHidden } from './read-hidden.ts';

const FLAG = '--argon2id';

/** There is no password to hash; the message says what to do. */
class NoPasswordError extends Error {}

/**
 * Prints the hash of a password: of one that is typed twice on a terminal, or of standard input.
 * Resolves to the exit code: 0, 1 when the user gave up, 2 with a message on standard error.
 */
export async function hashPasswordCommand(argv: readonly string[]): Promise<number> {
  try {
    checkArguments(argv);
    const password = process.stdin.isTTY ? await askTwice() : await readAll();
    if (password === undefined) return 1;
    // What no Basic header could carry is of no use to anybody.
    if (!/^\P{Cc}+$/u.test(password)) {
      throw new NoPasswordError('A password has at least one character, and no control characters');
    }
    const hash = await hashPassword(password, argv.includes(FLAG) ? 'argon2id' : 'scrypt');
    process.stdout.write(`${hash}\n`);
    if (process.stdout.isTTY) process.stderr.write('In a shell put it in single quotes, because of its $.\n');
    return 0;
  } catch (error) {
    if (!(error instanceof NoPasswordError)) throw error;
    process.stderr.write(`portico: ${error.message}\n`);
    return 2;
  }
}

function checkArguments(argv: readonly string[]): void {
  const wrong = argv.find((word) => word !== FLAG);
  if (wrong === undefined) return;
  if (wrong.startsWith('-')) {
    throw new NoPasswordError(`${quote(wrong)} is no option of hash-password${didYouMean(wrong, [FLAG])}`);
  }
  // It may be the password itself, so it is not shown.
  throw new NoPasswordError(
    'A password is no argument, where others can see it; type it when asked, or send it to standard input',
  );
}

async function askTwice(): Promise<string | undefined> {
  const password = await readHidden('Password: ');
  if (password === undefined) return undefined;
  const again = await readHidden('Again: ');
  if (again !== undefined && again !== password) throw new NoPasswordError('The two are not the same');
  return again;
}

async function readAll(): Promise<string> {
  const bytes = Buffer.concat(await process.stdin.toArray());
  if (!isUtf8(bytes)) throw new NoPasswordError('Standard input is not UTF-8 text');
  return bytes.toString().replace(/\r?\n$/, '');
}
