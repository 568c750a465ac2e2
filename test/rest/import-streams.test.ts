import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { inFull } from '../support/proof-settings.ts';
import { waitFor } from '../support/wait-for.ts';
import { linesOf, openImport, type RestDoor, restDoors } from './support/rest-door.ts';

/** Lines that a client of a large import sends at once; it does so six times. */
const PART = inFull ? 5_000 : 2_000;
const NDJSON = { 'content-type': 'application/x-ndjson' };
const line = (i: number) => `{"name":"n${i}","email":"e${i}@x"}\n`;
const lines = (count: number) => Array.from({ length: count }, (_, i) => line(i)).join('');

async function count(door: RestDoor): Promise<number> {
  return Number((await door.get('/users?limit=1', { prefer: 'count=exact' })).headers.get('x-total-count'));
}

for (const [engine, open] of Object.entries(restDoors)) {
  describe(`streams of imports on ${engine}`, () => {
    test('lines are stored and reported while the client still sends', async () => {
      await using door = await open();
      const { request, reply } = openImport(door.url, NDJSON);
      request.write(`${line(0)}${line(1)}{"name":`);
      const response = (await reply).setEncoding('utf8');
      const report = response[Symbol.asyncIterator]();
      assert.deepEqual(linesOf((await report.next()).value), [
        { line: 1, id: 1 },
        { line: 2, id: 2 },
      ]);
      assert.equal(await count(door), 2);
      request.end(`"n2","email":"e2@x"}\n`);
      let rest = '';
      for await (const text of { [Symbol.asyncIterator]: () => report }) rest += text;
      assert.deepEqual(linesOf(rest), [
        { line: 3, id: 3 },
        { created: 3, refused: 0 },
      ]);
      // The same connection serves the next request.
      assert.equal(await door.create('Ada', 'ada@x'), 4);
    });

    test('of a client that leaves, what was reported is stored; of one transaction nothing is', async () => {
      await using door = await open();
      const { request, reply } = openImport(door.url, NDJSON);
      request.write(lines(50));
      await once(await reply, 'data');
      request.write('{"name":"half","email":"h@x"}');
      request.destroy();
      const whole = openImport(door.url, { ...NDJSON, prefer: 'transaction=all' });
      whole.request.write(lines(50));
      await once(whole.request, 'socket');
      whole.request.destroy();
      await waitFor('the imports to end', async () => (await count(door)) === 50 || undefined);
      assert.equal(await door.create('Ada', 'ada@x'), 51);
      const complaints = door.service.log.entries.filter(
        ({ level }) => level === 'warn' || level === 'error',
      );
      assert.deepEqual(complaints, []);
    });

    test('single creates go in between the lines of a large import', async () => {
      await using door = await open();
      const { request, reply } = openImport(door.url, { ...NDJSON, prefer: 'return=minimal' });
      const part = lines(PART);
      const ids: number[] = [];
      let sent = 0;
      let isDone = false;
      const sending = (async () => {
        // A slow machine may be long about the first one.
        const isBetween = () => ids.some((id) => id < sent);
        for (let i = 0; i < 6 || (!isBetween() && i < 200); i++) {
          sent += PART;
          if (!request.write(part)) await once(request, 'drain');
        }
        request.end();
        let text = '';
        for await (const chunk of (await reply).setEncoding('utf8')) text += chunk;
        isDone = true;
        return text;
      })();
      while (!isDone) ids.push(await door.create('Ada', 'ada@x'));
      assert.deepEqual(linesOf(await sending), [{ created: sent, refused: 0 }]);
      assert.ok(ids.some((id) => id < sent));
      // A busy server may refuse one.
      const stored = ids.filter((id) => !Number.isNaN(id)).length;
      const found = await count(door);
      assert.ok(found >= sent + stored && found <= sent + ids.length, `${found} of ${stored}`);
    });

    test('what cannot be read at all is refused before anything is stored, and says why', async () => {
      await using door = await open({ REST_MAX_IMPORT_BYTES: '3000' });
      for (const [headers, body, status, code] of [
        [{ 'content-type': 'text/csv' }, 'name,mail\na,a@x\n', 400, 'INVALID_IMPORT'],
        [{ prefer: 'transaction=line' }, '{"name":"a","email":"a@x"}', 400, undefined],
        [
          { prefer: 'transaction=line', 'content-type': 'application/json' },
          '{"name":"a","email":"a@x"}',
          400,
          'INVALID_IMPORT',
        ],
        [NDJSON, lines(200), 413, 'IMPORT_TOO_LARGE'],
        [{ ...NDJSON, 'sec-fetch-site': 'cross-site' }, lines(2), 403, 'CROSS_SITE'],
      ] as const) {
        const refused = await door.send('POST', '/users', { headers, body });
        if (code === undefined) continue;
        assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [status, code]);
        assert.equal(refused.headers.get('content-type'), 'application/json');
        if (code === 'INVALID_IMPORT')
          assert.match(refused.body.message ?? '', /no column "mail"|not a JSON array/);
      }
      // Of unknown length, the limit is found on the way: what came before it stays.
      const { request, reply } = openImport(door.url, NDJSON);
      request.write(line(0));
      const response = (await reply).setEncoding('utf8');
      request.end(lines(400));
      let text = '';
      for await (const chunk of response) text += chunk;
      const last = linesOf(text).at(-1);
      assert.deepEqual([last?.code, last?.stopped], ['IMPORT_TOO_LARGE', true]);
      assert.equal(await count(door), linesOf(text).length);
    });

    test('eight imports run at the same time, and one more is told to come later', async () => {
      await using door = await open();
      let created = 0;
      // Once they have been slow for a second one of them would make room, and this machine may stop for so long.
      await waitFor('a ninth to come in time', async () => {
        const running = Array.from({ length: 8 }, () => openImport(door.url, NDJSON));
        for (const { request } of running) request.write(line(0));
        for (const { reply } of running) (await reply).resume();
        const ninth = await door.send('POST', '/users', { headers: NDJSON, body: line(1) });
        for (const { request, reply } of running) {
          request.on('error', () => {}).end();
          await once(await reply, 'close');
        }
        created += 8;
        if (ninth.status === 200) created++;
        else assert.deepEqual([ninth.status, ninth.headers.get('retry-after')], [503, '1']);
        return ninth.status === 503;
      });
      assert.equal((await door.send('POST', '/users', { headers: NDJSON, body: line(1) })).status, 200);
      assert.equal(await count(door), created + 1);
    });

    test('an array is an import only where that is asked for', async () => {
      await using door = await open();
      const body = '[{"name":"a","email":"a@x"}]';
      for (const headers of [{}, { 'content-type': 'application/json' }, { prefer: 'return=minimal' }]) {
        const refused = await door.send('POST', '/users', { headers, body });
        assert.deepEqual(
          [refused.status, refused.text],
          [400, '{"status":"error","message":"Failed to create user"}'],
        );
      }
      for (const accept of [
        '*/*',
        'text/*',
        'text/html, */*;q=0.1',
        'text/csv;q=0, */*',
        'application/json, text/csv',
      ]) {
        const list = await door.get('/users', { accept });
        assert.equal(list.headers.get('content-type'), 'application/json', accept);
      }
    });
  });
}
