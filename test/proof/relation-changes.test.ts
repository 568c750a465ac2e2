import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { follow } from '../rest/support/rest-door.ts';
import { engineUrls } from '../support/databases.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { proofCount } from '../support/proof-settings.ts';
import { startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// PORTICO_PROOF_RELATION_KILLS: how many kills.
const KILLS = proofCount('PORTICO_PROOF_RELATION_KILLS', 6, 2);
const PATH = '/_changes?relation=authors,books,loans';

const moduleOf = (receiver: string) => `export default {
  relations: {
    authors: { columns: { name: { type: 'text', max: 50 } } },
    books: {
      columns: {
        title: { type: 'text', max: 50 },
        author: { type: 'reference', to: 'authors', onDelete: 'cascade' },
      },
    },
    loans: {
      key: ['book_id', 'reader'],
      columns: {
        book: { type: 'reference', to: 'books', onDelete: 'cascade' },
        reader: { type: 'text', max: 50 },
        note: { type: 'text', max: 50 },
      },
    },
  },
  webhook: {
    forward: { crm: { url: '${receiver}/crm', allowPrivate: true, changes: { authors: true, books: true, loans: true } } },
  },
};`;

interface Row {
  /** None: the row is a loan. */
  readonly id?: number;
  readonly book_id?: number;
  readonly name?: string;
  readonly title?: string;
  readonly note?: string;
}

/** An event of the log. */
interface Change {
  readonly position: number;
  readonly relation: string;
  readonly type: 'created' | 'updated' | 'deleted';
  readonly key: string;
  readonly row: Row;
}

/** A write that was acknowledged, when it was sent and answered, in milliseconds. */
interface Write {
  readonly change: string;
  readonly sentAt: number;
  readonly answeredAt: number;
}

const nameOf = ({ relation, type, key, row }: Omit<Change, 'position'>) =>
  `${relation} ${key} ${type} ${row.name ?? row.title ?? row.note}`;

for (const [engine, databaseUrl] of Object.entries(engineUrls)) {
  const count = engine === 'SQLite' ? 1 : 2;
  describe(`${count} processes on ${engine}`, () => {
    test(`tell each change of relations once and in order through ${KILLS} kills`, {
      timeout: 300_000 + KILLS * 100_000,
    }, async () => {
      await using folder = await temporaryFolder();
      await using receiver = await startReceiver();
      await writeFile(join(folder.path, 'portico.config.mjs'), moduleOf(receiver.url));
      const env = {
        DATABASE_URL: await databaseUrl(),
        INTERFACES: 'rest,webhook',
        WEBHOOK_LEASE: '500',
        WEBHOOK_BACKOFF: '10',
      };
      await using processes = new AsyncDisposableStack();
      const begin = async () => {
        const process = processes.use(startPortico({ cwd: folder.path, env }));
        await process.ready();
        return process;
      };
      const running = await Promise.all(Array.from({ length: count }, begin));
      const restAt = (i: number) => (running[i % count] as PorticoProcess).urls.rest ?? '';

      const told: Change[] = [];
      let stopped = false;
      const first = await follow(restAt(0), {}, '', PATH);
      let last = (await first.next())?.id ?? '';
      await first[Symbol.asyncDispose]();
      /** Follows the changes at any process that runs, each time from where it was. */
      const following = (async () => {
        for (let i = 0; !stopped; i++) {
          try {
            await using stream = await follow(restAt(i), { 'last-event-id': last }, '', PATH);
            assert.notEqual(stream.response.status, 410);
            for (let sent = await stream.next(); sent !== undefined && !stopped; sent = await stream.next()) {
              if (sent.id !== '') last = sent.id;
              if (sent.data !== '') told.push(JSON.parse(sent.data));
            }
          } catch (error) {
            if (error instanceof assert.AssertionError) throw error;
            await delay(10);
          }
        }
      })();

      const writes: Write[] = [];
      let writing = true;
      async function write(
        at: string,
        method: 'POST' | 'PATCH' | 'PUT',
        body: unknown,
      ): Promise<Row | undefined> {
        const sentAt = performance.now();
        const reply = await fetch(at, { method, body: JSON.stringify(body) }).catch(() => undefined);
        const text = await reply?.text().catch(() => undefined);
        if (reply?.ok !== true || text === undefined) {
          await delay(10);
          return undefined;
        }
        const [relation = '', key = ''] = new URL(at).pathname.slice(1).split('/');
        const type = method === 'PATCH' ? 'updated' : 'created';
        const row = JSON.parse(text) as Row;
        const change = nameOf({ relation, type, key: key === '' ? String(row.id) : key, row });
        writes.push({ change, sentAt, answeredAt: performance.now() });
        return row;
      }
      /** Writes to two relations in one transaction. */
      async function batch(rest: string, token: string, book: number): Promise<void> {
        const body = JSON.stringify({
          writes: [
            { method: 'POST', path: '/authors', body: { name: `c${token}` } },
            { method: 'POST', path: '/loans', body: { book_id: book, reader: 'batch', note: `m${token}` } },
          ],
        });
        const sentAt = performance.now();
        const reply = await fetch(`${rest}/_batch`, { method: 'POST', body }).catch(() => undefined);
        const text = await reply?.text().catch(() => undefined);
        if (reply?.ok !== true || text === undefined) return;
        const { results } = JSON.parse(text) as { results: readonly { body: Row }[] };
        const changes = [
          `authors ${results[0]?.body.id} created c${token}`,
          `loans ${book},batch created m${token}`,
        ];
        writes.push(...changes.map((change) => ({ change, sentAt, answeredAt: performance.now() })));
      }
      async function load(worker: number): Promise<void> {
        for (let i = 0; writing; i++) {
          const rest = restAt(worker + i);
          const author = await write(`${rest}/authors`, 'POST', { name: `a${worker}-${i}` });
          if (author === undefined) continue;
          const title = `b${worker}-${i}`;
          const book = await write(`${rest}/books`, 'POST', { title, author_id: author.id });
          if (book === undefined) continue;
          await write(`${rest}/books/${book.id}`, 'PATCH', { title: `${title}-new` });
          await write(`${rest}/loans/${book.id},r${worker}`, 'PUT', { note: `l${worker}-${i}` });
          await batch(rest, `${worker}-${i}`, Number(book.id));
          // The book and its loans go with their author.
          if (i % 3 === 0)
            await fetch(`${rest}/authors/${author.id}`, { method: 'DELETE' }).catch(() => undefined);
        }
      }
      const workers = Array.from({ length: 6 }, (_, worker) => load(worker));
      for (let kill = 0; kill < KILLS; kill++) {
        const before = writes.length;
        await waitFor('writes', () => writes.length > before + 100);
        const place = kill % count;
        running[place]?.child.kill('SIGKILL');
        await running[place]?.exited();
        running[place] = await begin();
      }
      const before = writes.length;
      await waitFor('more writes', () => writes.length > before + 20);
      writing = false;
      await Promise.all(workers);
      const end = await fetch(`${restAt(0)}/authors`, { method: 'POST', body: '{"name":"end"}' });
      assert.equal(end.status, 201);
      await waitFor('all events', () => told.some(({ row }) => row.name === 'end'));
      await waitFor('all deliveries', () =>
        receiver.at('/crm').some(({ body }) => body.includes('"name":"end"')),
      );
      stopped = true;

      const positions = told.map(({ position }) => position);
      assert.deepEqual(
        positions,
        Array.from(positions, (_, i) => (positions[0] ?? 0) + i),
        'no gap',
      );
      // Each acknowledged change is there once, and none before one that was acknowledged before it was sent.
      const places = new Map(told.map((change, i) => [nameOf(change), i]));
      assert.equal(places.size, told.length, 'no change is told twice');
      const ordered = writes
        .map((each) => ({
          ...each,
          place: places.get(each.change) ?? assert.fail(`${each.change} is missing`),
        }))
        .toSorted((a, b) => b.place - a.place);
      let earliest = Number.POSITIVE_INFINITY;
      for (const { change, sentAt, answeredAt } of ordered) {
        assert.ok(sentAt <= earliest, `${change} comes before what was acknowledged earlier`);
        earliest = Math.min(earliest, answeredAt);
      }
      // The changes lead to the rows.
      const empty = () => new Map<string, Row>();
      const replayed = { authors: empty(), books: empty(), loans: empty() };
      for (const { relation, type, key, row } of told) {
        const rows = replayed[relation as keyof typeof replayed];
        assert.equal(rows.has(key), type !== 'created', `${type} ${relation} ${key}`);
        if (type === 'deleted') rows.delete(key);
        else rows.set(key, row);
      }
      for (const [relation, rows] of Object.entries(replayed)) {
        const found: Row[] = [];
        for (let next: string | undefined = `/${relation}?limit=1000`; next !== undefined; ) {
          const reply: Response = await fetch(`${restAt(0)}${next}`);
          found.push(...((await reply.json()) as Row[]));
          next = /<([^>]*)>; rel="next"/.exec(reply.headers.get('link') ?? '')?.[1];
        }
        const texts = (all: readonly Row[]) => all.map((row) => JSON.stringify(row)).toSorted();
        assert.deepEqual(texts([...rows.values()]), texts(found));
      }
      // Each change is one delivery.
      const ids = () => {
        const found = new Map<number, Set<unknown>>();
        for (const { headers, body } of receiver.at('/crm')) {
          const { position } = JSON.parse(body.toString()).data as Change;
          found.set(position, (found.get(position) ?? new Set()).add(headers['webhook-id']));
        }
        return found;
      };
      await waitFor('the other deliveries', () => ids().size >= told.length);
      assert.deepEqual(
        [...ids().keys()].toSorted((a, b) => a - b),
        positions,
      );
      assert.deepEqual(
        [...ids()].filter(([, { size }]) => size !== 1),
        [],
      );
      running.length = 0;
      await processes.disposeAsync();
      await following;
    });
  });
}
