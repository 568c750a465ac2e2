import { type Random, seededRandom } from '../../support/random.ts';
import { idsOf, type Seed } from './corpus.ts';
import { mutate, sweep } from './mutate.ts';

/** What a client does behind some bytes: nothing, or it waits for a tick, for replies, or for some milliseconds. */
export type Wait = 'nothing' | 'tick' | 'replies' | number;

export interface Step {
  readonly bytes: Buffer;
  readonly wait: Wait;
}

const ENDINGS = ['half-close', 'half-close', 'half-close', 'half-close at once', 'close', 'reset'] as const;
/** How a client ends: it closes its half once there are no more replies, or with the last bytes; or the connection. */
export type Ending = (typeof ENDINGS)[number];

export interface Conversation {
  readonly number: number;
  /** The titles of what it was made from. */
  readonly of: readonly string[];
  /** Plain requests before it, each behind the reply to the one before. */
  readonly earlier: number;
  readonly steps: readonly Step[];
  readonly ending: Ending;
}

/** Where a plain request shows whether a connection is in order. */
const PROBE = 'GET /get/{id} HTTP/1.1\r\nHost: x\r\n\r\n';
/** Milliseconds; the fast path waits for 20 for the rest of a body. */
const PAUSES = [1, 5, 19, 20, 21, 40];

/** Makes the conversation of a number; the same number and seed make the same one. */
export function conversation(corpus: readonly Seed[], seed: number, number: number): Conversation {
  const random = seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const { fill } = idsOf(number);
  const seeds = pickSeeds(corpus, random);
  const bytesOf = (text: string) => Buffer.from(fill(text), 'latin1');
  const parts = seeds.flatMap(({ parts }) => parts.map(bytesOf));
  const foreign = () => bytesOf(random.pick(corpus).parts.join(''));
  const mutated = random.chance(0.25) ? sweep(parts, seed + number, random) : mutate(parts, random, foreign);
  return {
    number,
    of: seeds.map(({ file, name }) => `${file}: ${name}`),
    earlier: random.pick([0, 1, 1, 1, 2, 4]),
    steps: steps([...mutated, bytesOf(PROBE)], random),
    ending: random.pick(ENDINGS),
  };
}

/** One of the corpus, with plain ones around it. */
function pickSeeds(corpus: readonly Seed[], random: Random): readonly Seed[] {
  const plain = corpus.filter(({ isPlain }) => isPlain);
  const seeds = [random.pick(random.chance(0.7) ? corpus : plain)];
  // What is not plain mostly ends what the fast path answers of a connection.
  while (seeds.length < 6 && random.chance(0.75)) seeds.unshift(random.pick(plain));
  while (seeds.length < 6 && random.chance(0.4)) seeds.push(random.pick(random.chance(0.7) ? plain : corpus));
  return seeds;
}

/** The same bytes: in one piece, each part behind the replies to the one before, or cut anywhere. */
function steps(parts: readonly Buffer[], random: Random): readonly Step[] {
  const way = random.next();
  if (way < 0.1) return [{ bytes: Buffer.concat(parts), wait: 'nothing' }];
  if (way < 0.6) return parts.map((bytes) => ({ bytes, wait: 'replies' }));
  if (way < 0.78) return parts.map((bytes) => ({ bytes, wait: 'tick' }));
  const waits: readonly Wait[] = way < 0.92 ? ['tick'] : ['replies', 'tick', 'nothing', random.pick(PAUSES)];
  return cut(Buffer.concat(parts), random).map((bytes) => ({ bytes, wait: random.pick(waits) }));
}

/** A few pieces; sometimes many of a byte each. */
function cut(bytes: Buffer, random: Random): readonly Buffer[] {
  const places = new Set([bytes.length]);
  const count = 1 + random.below(6);
  for (let i = 0; i < count; i++) places.add(random.below(bytes.length));
  if (random.chance(0.2)) {
    const start = random.below(bytes.length);
    for (let i = start; i < Math.min(start + 60, bytes.length); i++) places.add(i);
  }
  places.delete(0);
  const pieces: Buffer[] = [];
  let start = 0;
  for (const end of [...places].sort((a, b) => a - b)) {
    pieces.push(bytes.subarray(start, end));
    start = end;
  }
  return pieces;
}
