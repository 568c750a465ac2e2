import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { ReplyBudget } from './reply-budget.ts';
import { PIECE_BYTES, type PiecewiseReply, TURN_PIECES, takenPieces } from './reply-streams.ts';

/** A reply whose client reads when it is told to. */
class FakeReply implements PiecewiseReply {
  bytes = 0;
  cuts = 0;
  readonly failures: unknown[] = [];
  readonly #isReading: boolean;
  readonly #closed: (() => void)[] = [];
  #waiting: (() => void) | undefined;

  constructor(isReading: boolean) {
    this.#isReading = isReading;
  }

  onClose(listener: () => void): void {
    this.#closed.push(listener);
  }

  taken(): number {
    return this.bytes;
  }

  cut(): void {
    this.cuts++;
    this.close();
  }

  whenTaken(): Promise<void> | undefined {
    if (this.#isReading) return undefined;
    return new Promise<void>((resolve) => {
      this.#waiting = resolve;
    });
  }

  onFailure(error: unknown): void {
    this.failures.push(error);
  }

  /** Whether a piece waits for the client. */
  isBlocked(): boolean {
    return this.#waiting !== undefined;
  }

  /** The client reads what waits for it. */
  read(): void {
    this.bytes++;
    this.#waiting?.();
    this.#waiting = undefined;
  }

  close(): void {
    for (const listener of this.#closed.splice(0)) listener();
    this.read();
  }
}

const reply = (isReading = true) => new FakeReply(isReading);

/** Pieces of which we know how many were made, and whether they were given up. */
function source(count: number, bytes = 10, onPiece = (): void => {}) {
  const seen = { made: 0, ended: false };
  async function* pieces() {
    try {
      while (seen.made < count) {
        seen.made++;
        onPiece();
        yield 'x'.repeat(bytes);
      }
    } finally {
      seen.ended = true;
    }
  }
  return { seen, pieces: pieces() };
}

/** Sends pieces to their end; resolves to what came. */
async function send(
  pieces: AsyncIterable<string | Uint8Array>,
  to: PiecewiseReply,
  budget = new ReplyBudget(),
) {
  const parts: Buffer[] = [];
  for await (const piece of takenPieces(pieces, to, budget)) parts.push(piece);
  return parts;
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn();
}

const busy = { status: 503, code: 'BUSY' };

test('everything arrives, in order, in bytes; a piece without any is left out', async () => {
  async function* pieces() {
    yield 'ä';
    yield '';
    yield new Uint8Array(Buffer.from('b\n').buffer.slice(0, 0));
    yield Buffer.from('\u{1f600}');
  }
  assert.deepEqual(await send(pieces(), reply()), [Buffer.from('ä'), Buffer.from('\u{1f600}')]);
});

test('what is unread is counted by bytes, and nothing of it stays counted', async () => {
  for (const size of [1, 20_000, PIECE_BYTES, 3 * PIECE_BYTES]) {
    const budget = new ReplyBudget();
    const to = reply(false);
    const done = send(source(3, size).pieces, to, budget);
    for (let piece = 0; piece < 3; piece++) {
      while (!to.isBlocked()) await nextTurn();
      assert.equal(budget.bytes, size);
      to.read();
    }
    await done;
    assert.equal(budget.bytes, 0);
  }
});

test('the next piece is made when the system has taken the one before', async () => {
  const to = reply(false);
  const { seen, pieces } = source(3);
  const done = send(pieces, to);
  for (let piece = 1; piece <= 3; piece++) {
    await turns(20);
    assert.equal(seen.made, piece);
    to.read();
  }
  assert.equal((await done).length, 3);
});

describe('turns', () => {
  test('the event loop turns after a few pieces', async () => {
    const { seen, pieces } = source(50);
    const done = send(pieces, reply());
    for (let before = 0; !seen.ended; before = seen.made) {
      await nextTurn();
      assert.ok(seen.made - before <= TURN_PIECES, `${seen.made - before} pieces in one turn`);
    }
    assert.equal((await done).length, 50);
  });

  test('replies that could all go on make their pieces in turns: none starves', async () => {
    const budget = new ReplyBudget();
    const [replies, pieces] = [20, 10 * TURN_PIECES];
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: replies }, (_, i) =>
        send(source(pieces, 100, () => order.push(i)).pieces, reply(), budget),
      ),
    );
    const round = replies * TURN_PIECES;
    for (let at = 0; at < order.length; at += round) {
      const made = Map.groupBy(order.slice(at, at + round), (nth) => nth);
      assert.equal(made.size, replies, `${order.slice(at, at + round)}`);
      for (const each of made.values()) assert.equal(each.length, TURN_PIECES);
    }
  });
});

describe('room', () => {
  test('a reply that begins without room is refused, one that has begun waits for it', async () => {
    const budget = new ReplyBudget(3 * PIECE_BYTES);
    const [first, second] = [reply(false), reply(false)];
    const { seen, pieces } = source(2, PIECE_BYTES);
    const done = [send(pieces, first, budget), send(source(1, PIECE_BYTES).pieces, second, budget)];
    budget.take(PIECE_BYTES, reply());
    await turns(20);
    await assert.rejects(send(source(1).pieces, reply(), budget), busy);
    assert.throws(() => budget.take(PIECE_BYTES, reply()), busy);
    // Of what the first one has read a part is kept free for replies that begin.
    first.read();
    await turns(20);
    assert.equal(seen.made, 1);
    const whole = reply();
    budget.take(PIECE_BYTES / 2, whole);
    whole.close();
    second.read();
    await turns(20);
    assert.equal(seen.made, 2);
    first.read();
    await Promise.all(done);
  });

  test('a client that does not read makes room for a piece that waits', async () => {
    const budget = new ReplyBudget(PIECE_BYTES);
    const [stalled, reading] = [reply(false), reply(false)];
    const { seen, pieces } = source(2, PIECE_BYTES);
    const done = send(pieces, reading, budget);
    await turns(20);
    reading.read();
    budget.open(stalled).add(PIECE_BYTES);
    while (seen.made < 2) await nextTurn();
    assert.equal(stalled.cuts, 1);
    reading.read();
    await done;
    assert.equal(reading.cuts, 0);
  });

  test('whoever reads, leaves or does not read: what is unread stays within the bound, and all that read get all', async () => {
    const max = 10 * PIECE_BYTES;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            pieces: fc.integer({ min: 1, max: 6 }),
            size: fc.integer({ min: 1, max: PIECE_BYTES }),
          }),
          { minLength: 1, maxLength: 30 },
        ),
        fc.infiniteStream(fc.nat()),
        async (replies, choices) => {
          const budget = new ReplyBudget(max);
          let open = 0;
          const all = replies.map(({ pieces, size }) => {
            const to = reply(false);
            const { seen, pieces: made } = source(pieces, size);
            open++;
            const done = send(made, to, budget)
              .then(
                (parts) => parts.length,
                (error: unknown) => Object(error).code as string,
              )
              .finally(() => open--);
            return { to, seen, pieces, done, left: false };
          });
          for (let i = 0; open > 0; i++) {
            assert.ok(budget.bytes <= max, `${budget.bytes} bytes`);
            const { value = 0 } = choices.next();
            const chosen = all[value % all.length];
            if (value % 17 === 0 && chosen !== undefined) {
              chosen.left = true;
              chosen.to.close();
            } else chosen?.to.read();
            if (i % 4 === 0) await nextTurn();
          }
          for (const { done, seen, pieces, left, to } of all) {
            const got = await done;
            // A client may look stalled on a busy machine.
            if (!left && to.cuts === 0 && got !== 'BUSY') assert.equal(got, pieces);
            assert.ok(seen.ended || seen.made === 0);
          }
          assert.equal(budget.bytes, 0);
        },
      ),
      { numRuns: 60 },
    );
  });
});

test('a client that leaves ends the source, whatever the reply waits for', async () => {
  for (const isReading of [true, false]) {
    const budget = new ReplyBudget();
    const to = reply(isReading);
    const { seen, pieces } = source(1_000);
    const done = send(pieces, to, budget);
    await turns(10);
    to.close();
    await done;
    assert.ok(seen.ended);
    assert.ok(seen.made <= 11 * TURN_PIECES, `${seen.made} pieces`);
    assert.equal(budget.bytes, 0);
  }
});

test('a source that fails is told to the reply once it has begun, and to its caller in any case', async () => {
  for (const before of [0, 1]) {
    const budget = new ReplyBudget();
    const to = reply();
    async function* failing() {
      for (let i = 0; i < before; i++) yield 'a';
      throw new Error('broken meter');
    }
    await assert.rejects(send(failing(), to, budget), /broken meter/);
    assert.equal(to.failures.length, before);
    assert.equal(budget.bytes, 0);
  }
});
