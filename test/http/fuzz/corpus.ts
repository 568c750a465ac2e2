import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Door } from '../../../src/config/options/options.ts';

const FOLDER = join(import.meta.dirname, '../corpus');

const PLAIN = 'plain.txt';

/** What a client says, as the corpus has it. */
export interface Seed {
  readonly file: string;
  readonly name: string;
  /** What a usual client says. */
  readonly isPlain: boolean;
  /** Between them the client may wait for replies. The bytes as characters, with `{id}` for ids. */
  readonly parts: readonly string[];
}

/** What is said to the echo door, in an order that is always the same. */
export function readCorpus(): readonly Seed[] {
  return globSync('*.txt', { cwd: FOLDER })
    .sort()
    .flatMap((file) => readSeeds(file, file === PLAIN));
}

/** What is said to a door of the service. */
export function readServiceCorpus(door: Door): readonly Seed[] {
  const odd = readCorpus().filter(({ isPlain }) => !isPlain);
  return [...readSeeds(`services/${door}.txt`, true), ...odd];
}

function readSeeds(file: string, isPlain: boolean): readonly Seed[] {
  return `\n${readFileSync(join(FOLDER, file), 'utf8')}`
    .split('\n# ')
    .slice(1)
    .map((entry) => readSeed(file, isPlain, entry));
}

function readSeed(file: string, isPlain: boolean, entry: string): Seed {
  const [name = '', ...lines] = entry.split('\n');
  const parts = [''];
  for (const line of lines) {
    if (line === '--') parts.push('');
    else parts[parts.length - 1] += line;
  }
  return { file, name, isPlain, parts: parts.map(unescaped) };
}

const ESCAPES: Readonly<Record<string, string>> = { r: '\r', n: '\n', t: '\t', 0: '\0', '\\': '\\' };

function unescaped(text: string): string {
  return text
    .replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex?: string, letter = '') =>
      hex === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
    )
    .replace(/\{([^{}]+)\*(\d+)\}/g, (_, repeated: string, times: string) => repeated.repeat(Number(times)));
}

const ID_PLACE = /\{id\}/g;
const PREFIXES = 36 ** 4;
/** Prime to their number: neighbours have ids that no change of one byte makes alike. */
const SPREAD = 1_037_141;

/** Ids that no other conversation has: a prefix of six characters, and two that count. */
export function idsOf(conversation: number) {
  let used = 0;
  const digits = (value: number, length: number) => value.toString(36).padStart(length, '0');
  const prefix = `k0${digits((conversation * SPREAD) % PREFIXES, 4)}`;
  return {
    prefix,
    /** Puts a new id into each place for one. */
    fill: (text: string) => text.replace(ID_PLACE, () => `${prefix}${digits(used++, 2)}`),
  };
}

/** All ids in a text, and what looks like one. */
export function idsIn(text: string): readonly string[] {
  return text.match(/k0[0-9a-z]{6}/g) ?? [];
}
