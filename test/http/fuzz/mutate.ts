import type { Random } from '../../support/random.ts';

type Change = (bytes: Buffer, random: Random, foreign: () => Buffer) => Buffer;

/** What means something in a head. */
const WORDS = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    '\n\n',
    ' ',
    '\t',
    ':',
    ',',
    ';',
    '\0',
    '\x0b',
    '\xff',
    '0',
    '8',
    '/',
    '?',
  ],
  ...[
    'chunked',
    'Transfer-Encoding: chunked\r\n',
    'Content-Length: 0\r\n',
    'Content-Length: 8\r\n',
    '0\r\n\r\n',
  ],
  ...[
    'Connection: close\r\n',
    'Connection: Upgrade\r\nUpgrade: x\r\n',
    'Host: y\r\n',
    'Expect: 100-continue\r\n',
  ],
  ...[' HTTP/1.1', ' HTTP/1.0', 'GET ', 'POST ', '/get/', '/echo', '/later', '__proto__: x\r\n', ' x\r\n'],
];

/** Replaces bytes. */
function splice(bytes: Buffer, start: number, length: number, between: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, start), between, bytes.subarray(start + length)]);
}

/** Mostly short, sometimes up to the end. */
function range(bytes: Buffer, random: Random): readonly [start: number, length: number] {
  const start = random.below(bytes.length);
  const left = bytes.length - start;
  return [start, 1 + random.below(random.chance(0.8) ? Math.min(left, 8) : left)];
}

const CHANGES: readonly Change[] = [
  (bytes, random) => splice(bytes, random.below(bytes.length), 1, Buffer.of(random.below(256))),
  (bytes, random) => splice(bytes, random.below(bytes.length), 0, Buffer.of(random.below(256))),
  (bytes, random) => splice(bytes, random.below(bytes.length), 0, Buffer.from(random.pick(WORDS), 'latin1')),
  // A line of its own.
  (bytes, random) => {
    const lines = [...bytes.toString('latin1').matchAll(/\r\n/g)].map(({ index }) => index + 2);
    if (lines.length === 0) return bytes;
    return splice(bytes, random.pick(lines), 0, Buffer.from(random.pick(WORDS), 'latin1'));
  },
  (bytes, random) => splice(bytes, ...range(bytes, random), Buffer.alloc(0)),
  (bytes, random) => {
    const [start, length] = range(bytes, random);
    return splice(bytes, start, 0, bytes.subarray(start, start + length));
  },
  (bytes, random) => {
    const [start, length] = range(bytes, random);
    return splice(bytes, random.below(bytes.length), 0, bytes.subarray(start, start + length));
  },
  (bytes, random, foreign) => splice(bytes, ...range(bytes, random), foreign()),
  (bytes, random) => bytes.subarray(0, random.below(bytes.length)),
];

/** Some changes at random places; often none, because what is in the corpus is odd enough. */
export function mutate(parts: readonly Buffer[], random: Random, foreign: () => Buffer): readonly Buffer[] {
  const changed = [...parts];
  while (random.chance(0.5)) {
    const i = random.below(changed.length);
    const part = changed[i];
    if (part !== undefined && part.length > 0) changed[i] = random.pick(CHANGES)(part, random, foreign);
  }
  return changed.filter(({ length }) => length > 0);
}

/** Prime to 256 and to most lengths, so that steps of it come to every value of every byte. */
const STRIDE = 7_919;
/** Where the heads of most requests end. */
const HEAD = 160;

/** One byte of the first bytes of a part gets another value: the values and places follow each other by a stride. */
export function sweep(parts: readonly Buffer[], step: number, random: Random): readonly Buffer[] {
  const i = random.below(parts.length);
  return parts.map((part, index) => {
    if (index !== i) return part;
    const at = (step * STRIDE) % (Math.min(part.length, HEAD) * 256);
    return splice(part, at >> 8, 1, Buffer.of(at & 0xff));
  });
}
