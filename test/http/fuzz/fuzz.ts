import { clock } from './clock.ts';
import { difference, type Outcome } from './compare.ts';
import { type Conversation, conversation } from './conversation.ts';
import { idsOf, type Seed } from './corpus.ts';
import { play, type Target } from './play.ts';

/** A door that a fuzz talks to. */
export interface FuzzedDoor extends Target {
  /** What the endpoints saw of a conversation, by the beginning of its ids; they are taken away. */
  arrivals(prefix: string): readonly string[];
}

export interface FuzzOptions {
  readonly corpus: readonly Seed[];
  /** The same seed makes the same conversations. */
  readonly seed: number;
  /** The number of the first conversation. */
  readonly first: number;
  readonly count: number;
  readonly fast: FuzzedDoor;
  readonly fastify: FuzzedDoor;
}

const AT_ONCE = 32;
/** After these a door has done all that it does for a client that is gone. */
const AFTERMATH = 30;
/** So many differences are reported. */
const MAX_FOUND = 5;

/** Has the same conversations with both doors; resolves to what differs, each with all that was said. */
export async function fuzz(options: FuzzOptions): Promise<readonly string[]> {
  const { corpus, seed, first, count, fast, fastify } = options;
  const found: string[] = [];
  let next = first;
  const converse = async () => {
    while (next < first + count && found.length < MAX_FOUND) {
      const said = conversation(corpus, seed, next++);
      const both = await Promise.all([play(said, fast), play(said, fastify)]);
      await clock.ticks(AFTERMATH);
      const { prefix } = idsOf(said.number);
      const [a, b] = [fast, fastify].map((door, i) => ({ ...both[i], arrivals: door.arrivals(prefix) }));
      const what = difference(said, a as Outcome, b as Outcome);
      if (what !== undefined) found.push(describe(what, seed, said, a as Outcome, b as Outcome));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, converse));
  return found;
}

function describe(
  what: string,
  seed: number,
  { number, of, earlier, steps, ending }: Conversation,
  fast: Outcome,
  fastify: Outcome,
): string {
  const said = steps.map(({ bytes, wait }) => `  ${JSON.stringify(bytes.toString('latin1'))} ${wait}`);
  const show = ({ text, arrivals, closedBy, isReset }: Outcome) =>
    `${text}\n  closed by ${closedBy}${isReset ? ', reset' : ''}, arrivals: ${arrivals.join('\n    ') || 'none'}`;
  return `${what}: PORTICO_FUZZ_SEED=${seed} PORTICO_FUZZ_FIRST=${number} PORTICO_FUZZ=1
${of.join(' + ')}, behind ${earlier}, ${ending}
${said.join('\n')}
--- the fast path
${show(fast)}
--- Fastify
${show(fastify)}
`;
}
