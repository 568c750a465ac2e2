import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutPostgres } from '../support/databases.ts';
import { grownMegabytes, residentMegabytes } from '../support/memory.ts';
import { startPortico } from '../support/portico-process.ts';
import { inFull, proofCount } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { watchedTurns } from '../support/turns.ts';
import { filledDatabase } from './worst/declaration.ts';
import { changedRequest, KNOWN, LONG, type RelationRequest, randomRequest } from './worst/random-request.ts';

/** Requests that are tried beside those known: half of them at random, the others bred from the worst so far. */
const REQUESTS = proofCount('PORTICO_WORST_REQUESTS', 60, 6);
const isRandom = process.env.PORTICO_TEST_SEED === 'random';
const SEED = Number(process.env.PORTICO_WORST_SEED ?? (isRandom ? Math.floor(Math.random() * 2 ** 31) : 1));
/**
 * How much processor time any request may take of the event loop in one turn, in milliseconds: the 50 of the design on a
 * quiet machine, where the longest is told; what has no bound takes seconds on any.
 */
const MAX_TURN = 150;
/**
 * What any request may take, and what 64 at once may: 5 times the 64 MiB of bodies and 64 MiB of replies that the doors
 * hold, since a body becomes text, values, those of the writer, and a reply. In megabytes.
 */
const MAX_MEMORY = { one: 64, many: 5 * 128 };
/** The same in any try, on a machine that is too busy to collect garbage. */
const MAX_BUSY = 8 * 128;
const SIZES = inFull
  ? { wide: 4_000, large: 60, children: 30_000 }
  : { wide: 400, large: 12, children: 11_000 };
/** How long an export is read, in milliseconds: with an expensive filter it may look at rows for minutes. */
const PATIENCE = 10_000;
/** Stands for the status of an export whose client has left before the first row. */
const LEFT = 0;
/** What a request may be answered with. */
const ANSWERS: ReadonlySet<number> = new Set([LEFT, 200, 201, 204, 400, 404, 409, 413, 431, 503]);

interface Tried {
  readonly request: RelationRequest;
  readonly turn: number;
  readonly memory: number;
  readonly status: number;
}

const told = ({ request: { method, path, parameters, body }, turn, memory, status }: Tried) =>
  `${turn.toFixed(1)} ms, ${memory.toFixed(0)} MB (${status}): ${method} ${path} ${JSON.stringify(parameters ?? {}).slice(0, 400)} ${body?.().slice(0, 90) ?? ''}`;

for (const engine of ['sqlite', 'postgres'] as const) {
  const skip = engine === 'postgres' && (withoutPostgres ?? (inFull ? false : 'it runs with the proofs'));
  test(`no allowed request for relations holds the event loop or takes much memory, on ${engine}`, {
    skip,
  }, async (t) => {
    t.diagnostic(`PORTICO_WORST_SEED=${SEED}`);
    await using folder = await temporaryFolder();
    const url = await filledDatabase(folder.path, engine, SIZES);
    const turns = watchedTurns(folder.path);
    await using portico = startPortico({
      cwd: folder.path,
      nodeArgs: turns.nodeArgs,
      env: { ...turns.env, DATABASE_URL: url, INTERFACES: 'rest' },
    });
    await portico.ready();
    const pid = portico.child.pid ?? 0;
    const send = async ({ method, path, parameters = {}, headers = {}, body }: RelationRequest) => {
      const query = new URLSearchParams(parameters).toString();
      const isExport = method === 'GET' && /csv|ndjson/.test(headers.accept ?? '');
      const signal = isExport ? AbortSignal.timeout(PATIENCE) : null;
      let status = LEFT;
      try {
        const reply = await fetch(`${portico.urls.rest}${path}${query === '' ? '' : `?${query}`}`, {
          method,
          headers: { ...headers, connection: 'close' },
          body: body?.() ?? null,
          signal,
        });
        status = reply.status;
        await reply.arrayBuffer();
      } catch (error) {
        if (signal?.aborted !== true) throw error;
      }
      return status;
    };
    const random = seededRandom(SEED);
    const tried: Tried[] = [];
    const attempt = async (request: RelationRequest) => {
      const text = request.body?.() ?? '';
      const sent: RelationRequest = request.body === undefined ? request : { ...request, body: () => text };
      await turns.longest();
      let status = 0;
      const memory = await grownMegabytes(pid, async () => {
        status = await send(sent);
      });
      tried.push({ request, turn: await turns.longest(), memory, status });
    };
    // Until the code is compiled and the heap has its size. What removes rows, or looks at them for seconds, is done once.
    for (const request of KNOWN) if (request.method !== 'DELETE') await attempt(request);
    const first = tried.splice(0);
    for (const request of [...(inFull ? LONG : LONG.slice(0, 1)), ...KNOWN]) await attempt(request);
    for (let i = 0; i < REQUESTS; i++) {
      if (i < REQUESTS / 2) await attempt(randomRequest(random));
      else {
        const worst = tried.toSorted((a, b) => b.turn - a.turn).slice(0, 8);
        await attempt(changedRequest(random.pick(worst).request, random));
      }
    }
    // A turn may have collected the garbage of others, and memory may be theirs: what seems too much is tried again.
    const isTooMuch = ({ turn, memory }: Tried) => turn > MAX_TURN || memory > MAX_MEMORY.one;
    const suspects = tried.filter((each) => isTooMuch(each) && each.request.method !== 'DELETE');
    for (const suspect of suspects) {
      const at = tried.indexOf(suspect);
      let least = suspect;
      for (let again = 0; again < 3 && isTooMuch(least); again++) {
        await attempt(suspect.request);
        const { turn = 0, memory = 0 } = tried.pop() ?? {};
        least = { ...suspect, turn: Math.min(least.turn, turn), memory: Math.min(least.memory, memory) };
        tried[at] = least;
      }
    }
    t.diagnostic(`${suspects.length} of ${tried.length} requests were tried again`);
    const slowest = tried.toSorted((a, b) => b.turn - a.turn);
    const largest = tried.toSorted((a, b) => b.memory - a.memory);
    const [cold] = first.toSorted((a, b) => b.memory - a.memory);
    t.diagnostic(`while the heap grew: ${cold && told(cold)}`);
    for (const each of [...slowest.slice(0, 3), ...largest.slice(0, 2)]) t.diagnostic(told(each));
    assert.ok(slowest[0] && largest[0]);
    assert.ok(slowest[0].turn < MAX_TURN, told(slowest[0]));
    assert.ok(largest[0].memory < MAX_MEMORY.one, told(largest[0]));
    const odd = tried.find(({ status }) => !ANSWERS.has(status));
    assert.equal(odd && told(odd), undefined);

    const some = largest.slice(0, 4).map(({ request }) => request);
    const read = tried.filter(({ request, status }) => request.method === 'GET' && status === 200).length;
    assert.ok(read > KNOWN.length / 4, `${read} lists and exports were answered`);

    // The door may cut a reply that this process is too slow to read.
    const before = residentMegabytes(pid);
    for (let tries = 1; ; tries++) {
      const base = residentMegabytes(pid);
      const grown = await grownMegabytes(pid, () =>
        Promise.all(
          Array.from({ length: 64 }, (_, i) => send(some[i % some.length] as RelationRequest).catch(() => 0)),
        ),
      );
      // Garbage of the try before is its own, so the base stays.
      const many = base - before + grown;
      t.diagnostic(`${many.toFixed(0)} MB for 64 at once`);
      assert.ok(many < (tries < 3 ? MAX_BUSY : MAX_MEMORY.many), `${many} MB for 64 at once`);
      if (many < MAX_MEMORY.many) break;
    }
    assert.equal(await send({ method: 'GET', path: '/parents/c1,1' }), 200);
  });
}
