import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inFull, proofCount } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startWithDatabase, startWithMemory } from './worst/many-users.ts';
import { changed, type DocumentParts, randomDocument, textOf } from './worst/random-document.ts';
import { type Seen, watch } from './worst/watch.ts';

/** Users in the store: PORTICO_WORST_USERS=1000000 for a long search. */
const USERS = proofCount('PORTICO_WORST_USERS', 100_000, 50_000);
/** Documents that are tried: the first half at random, the others bred from the worst so far. */
const DOCUMENTS = proofCount('PORTICO_WORST_DOCUMENTS', 20, 4);
const SEED = Number(process.env.PORTICO_WORST_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** What any document may cost, in megabytes. */
const MAX_MEMORY = 64;
/** How long any document may hold the event loop, in milliseconds: told, not judged, because other work counts too. */
const MAX_STALL = 50;

const KNOWN = [
  `{${Array.from({ length: 30 }, (_, i) => `a${i}:users{id name email}`).join(' ')}}`,
  '{users{id name email}}',
  `{users{${Array.from({ length: 30 }, (_, i) => `a${i}:name`).join(' ')}}}`,
];

async function post(url: string, query: string): Promise<string> {
  // A kept connection may be closed just when a request is sent, if this process stands still for seconds.
  const headers = { 'content-type': 'application/json', connection: 'close' };
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) });
  return reply.text();
}

interface Tried {
  readonly parts: DocumentParts;
  readonly text: string;
  readonly seen: Seen;
}

const stores = { memory: startWithMemory, database: startWithDatabase } as const;

for (const [name, start] of Object.entries(stores)) {
  test(`the worst document for ${USERS} users, in ${name} mode`, { timeout: 3_600_000 }, async (t) => {
    await using folder = await temporaryFolder();
    await using portico = await start(folder.path, USERS);
    const url = `${portico.urls.graphql}/graphql`;
    const pid = portico.child.pid ?? 0;
    // Until the heap has the size that the work needs.
    for (const query of inFull ? [...KNOWN, ...KNOWN] : KNOWN) await post(url, query);

    const random = seededRandom(SEED);
    const tried: Tried[] = [];
    const attempt = async (parts: DocumentParts, text = textOf(parts)) => {
      const seen = await watch(url, pid, () => post(url, text));
      tried.push({ parts, text, seen });
    };
    for (const text of KNOWN) await attempt({ operation: [], fragments: [] }, text);
    for (let i = 0; i < DOCUMENTS; i++) {
      if (i < DOCUMENTS / 2) await attempt(randomDocument(random));
      else {
        const worst = tried.toSorted((a, b) => b.seen.stall - a.seen.stall).slice(0, 5);
        await attempt(changed(random.pick(worst).parts, random));
      }
    }
    const slowest = tried.toSorted((a, b) => b.seen.stall - a.seen.stall)[0];
    const largest = tried.toSorted((a, b) => b.seen.memory - a.seen.memory)[0];
    assert.ok(slowest && largest);
    t.diagnostic(`PORTICO_WORST_SEED=${SEED}`);
    const long = tried.filter(({ seen }) => seen.stall > MAX_STALL).length;
    t.diagnostic(`${long} of ${tried.length} documents stalled the doors for more than ${MAX_STALL} ms`);
    t.diagnostic(`longest stall ${slowest.seen.stall.toFixed(1)} ms: ${slowest.text.slice(0, 3000)}`);
    t.diagnostic(`most memory ${largest.seen.memory.toFixed(0)} MB: ${largest.text.slice(0, 300)}`);
    assert.ok(largest.seen.memory < MAX_MEMORY, `${largest.seen.memory} MB: ${largest.text}`);
    assert.match(await post(url, '{hello}'), /Hello/);
  });
}
