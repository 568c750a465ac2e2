import crypto, { hash, timingSafeEqual } from 'node:crypto';
import { ExpectedError } from './errors.ts';

// Imports the default export for argon2: early releases of Node 24 lack it, and importing it by name would
// fail there.

type PasswordAlgorithm = 'scrypt' | 'argon2id';

/** A hashed password with its parameters. Memory is in KiB. */
type PasswordHash = {
  readonly salt: Buffer;
  readonly hash: Buffer;
} & (
  | {
      readonly algorithm: 'scrypt';
      readonly logN: number;
      readonly blockSize: number;
      readonly parallelism: number;
    }
  | {
      readonly algorithm: 'argon2id';
      readonly memory: number;
      readonly passes: number;
      readonly parallelism: number;
    }
);

/** A text that begins like a password hash is invalid. The message quotes no part of it. */
export class PasswordHashError extends ExpectedError {
  override readonly name = 'PasswordHashError';
  readonly code = 'PASSWORD_HASH';

  constructor(why: string) {
    super(`A password hash ${why}. Make one with "portico hash-password".`);
  }
}

/** Maximum memory of a check, in KiB. */
const MAX_MEMORY = 256 * 1024;
/** Maximum cost of a check, in the unit of `costOf`: a second or two. */
const MAX_WORK = 1024 * 1024;

/** Parameters of new hashes as OWASP recommends: 32 MiB for scrypt, 19 MiB for argon2id. */
const DEFAULTS = {
  scrypt: { algorithm: 'scrypt', logN: 15, blockSize: 8, parallelism: 3 },
  argon2id: { algorithm: 'argon2id', memory: 19_456, passes: 2, parallelism: 1 },
} as const;

const number = (name: string) => `${name}=([1-9]\\d{0,9})`;
const base64 = '([A-Za-z0-9+/]+)';
const SCRYPT = new RegExp(
  `^\\$scrypt\\$${number('ln')},${number('r')},${number('p')}\\$${base64}\\$${base64}$`,
);
const ARGON2ID = new RegExp(
  `^\\$argon2id\\$v=19\\$${number('m')},${number('t')},${number('p')}\\$${base64}\\$${base64}$`,
);
/** Prefixes of hashes, also those of other programs; a password must not begin like this. */
const HASHED = /^\$(?:scrypt|argon2(?:i|d|id)?|pbkdf2[\w-]*|bcrypt[\w-]*|2[abxy]?|1|5|6|7|y|gy)\$/;

export function isPasswordHash(text: string): boolean {
  return HASHED.test(text);
}

/** Parses `$scrypt$ln=,r=,p=$salt$hash` or `$argon2id$v=19$m=,t=,p=$salt$hash`. Throws PasswordHashError. */
export function parsePasswordHash(text: string): PasswordHash {
  const scrypt = SCRYPT.exec(text);
  const argon2id = ARGON2ID.exec(text);
  const [, first, second, third, salt = '', hash = ''] = scrypt ?? argon2id ?? [];
  const bytes = { salt: bytesOf(salt, 8, 64), hash: bytesOf(hash, 16, 64) };
  const [a, b, parallelism] = [Number(first), Number(second), Number(third)];
  if (scrypt !== null) {
    return bounded({ algorithm: 'scrypt', logN: a, blockSize: b, parallelism, ...bytes });
  }
  if (argon2id !== null) {
    return bounded({ algorithm: 'argon2id', memory: a, passes: b, parallelism, ...bytes });
  }
  throw new PasswordHashError('is neither a whole $scrypt$ nor a whole $argon2id$ one');
}

/** Decodes canonical base64, without padding or stray bits. */
function bytesOf(text: string, min: number, max: number): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (text !== '' && (toBase64(bytes) !== text || bytes.length < min || bytes.length > max)) {
    throw new PasswordHashError(`has a part that is not ${min} to ${max} bytes of base64 without padding`);
  }
  return bytes;
}

function toBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}

function bounded(hash: PasswordHash): PasswordHash {
  if (hash.parallelism > 16) throw new PasswordHashError('asks for a p of more than 16');
  if (hash.algorithm === 'argon2id') {
    if (hash.memory < 8 * hash.parallelism)
      throw new PasswordHashError('asks for an m of less than 8 times p');
  } else if (hash.logN > 20 || hash.blockSize > 32) {
    throw new PasswordHashError('asks for an ln of more than 20 or an r of more than 32');
  }
  if (memoryOf(hash) > MAX_MEMORY) throw new PasswordHashError('asks for more than 256 MiB');
  if (costOf(hash) > MAX_WORK) throw new PasswordHashError('asks for more than a second or two');
  return hash;
}

function memoryOf(hash: PasswordHash): number {
  return hash.algorithm === 'argon2id' ? hash.memory : (hash.blockSize * 2 ** hash.logN) / 8;
}

/** The work of a check: its memory in KiB times the number of passes over it. */
export function costOf(hash: PasswordHash): number {
  return memoryOf(hash) * (hash.algorithm === 'argon2id' ? hash.passes : hash.parallelism);
}

/** Verifies a password on a thread of the pool, which may take a second or two. */
export async function verifyPassword(password: string, hash: PasswordHash): Promise<boolean> {
  return crypto.timingSafeEqual(await derive(password, hash), hash.hash);
}

/** A random hash of the same cost that no password matches, for checking unknown user names. */
export function decoyOf(hash: PasswordHash): PasswordHash {
  return { ...hash, salt: crypto.randomBytes(hash.salt.length), hash: crypto.randomBytes(hash.hash.length) };
}

/** Hashes a password with a new salt, in the format that `parsePasswordHash` reads. */
export async function hashPassword(password: string, algorithm: PasswordAlgorithm): Promise<string> {
  const salt = crypto.randomBytes(16);
  const made: PasswordHash = { ...DEFAULTS[algorithm], salt, hash: Buffer.alloc(32) };
  const parameters =
    made.algorithm === 'scrypt'
      ? `scrypt$ln=${made.logN},r=${made.blockSize},p=${made.parallelism}`
      : `argon2id$v=19$m=${made.memory},t=${made.passes},p=${made.parallelism}`;
  return `$${parameters}$${toBase64(salt)}$${toBase64(await derive(password, made))}`;
}

function derive(password: string, made: PasswordHash): Promise<Buffer> {
  const { salt, parallelism, hash } = made;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const done = (error: Error | null, derived: Buffer) => (error ? reject(error) : resolve(derived));
  if (made.algorithm === 'scrypt') {
    // Twice the memory that `bounded` allows, since OpenSSL needs a little more than the hash.
    const options = { N: 2 ** made.logN, r: made.blockSize, p: parallelism, maxmem: 2 * 1024 * MAX_MEMORY };
    crypto.scrypt(password, salt, hash.length, options, done);
  } else if (typeof crypto.argon2 === 'function') {
    const { memory, passes } = made;
    const options = { message: password, nonce: salt, parallelism, tagLength: hash.length, memory, passes };
    crypto.argon2('argon2id', options, done);
  } else {
    reject(new PasswordHashError('of argon2id needs Node 24.7 or newer'));
  }
  return promise;
}

/** A configured secret is empty and would let everyone in. */
export class EmptySecretError extends ExpectedError {
  override readonly name = 'EmptySecretError';
  readonly code = 'EMPTY_SECRET';

  constructor() {
    super('A configured secret is empty. Give it a value, or remove it to leave the door unsecured.');
  }
}

/** The SHA-256 of a text's UTF-8 bytes, which makes secrets of any length comparable in constant time. */
export function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/**
 * Creates a function that compares a presented secret with the configured ones in constant time. Without
 * configured secrets nothing matches. Throws EmptySecretError if one is empty.
 * Node decodes header values as Latin-1: if secrets may contain other characters, decode the value as UTF-8
 * first.
 */
export function secretMatcher(secrets: readonly string[]): (presented: string | undefined) => boolean {
  if (secrets.includes('')) throw new EmptySecretError();
  const configured = secrets.map(digestOf);
  return (presented) => {
    if (presented === undefined) return false;
    const digest = digestOf(presented);
    let matches = false;
    // No early exit, so that the time does not reveal which secret matched.
    for (const known of configured) if (timingSafeEqual(known, digest)) matches = true;
    return matches;
  };
}

const PLAIN = /^\P{Cc}+$/u;

/** Completes "must be …" for a password. */
export const expectedPassword =
  'a password without control characters, or a whole $scrypt$ or $argon2id$ hash that takes at most 256 MiB and about a second (portico hash-password makes one)';

/** Whether a text is a plain password or a hash that Portico can verify. */
export function isPassword(text: string): boolean {
  if (!PLAIN.test(text)) return false;
  if (!isPasswordHash(text)) return true;
  try {
    parsePasswordHash(text);
    return true;
  } catch (error) {
    if (error instanceof PasswordHashError) return false;
    throw error;
  }
}
