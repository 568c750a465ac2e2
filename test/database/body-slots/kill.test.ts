import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { openDatabase } from '../../../src/sql/open.ts';
import { wrongBodies } from '../../support/body-slots.ts';
import { postgresDatabase, withoutPostgres } from '../../support/databases.ts';

/** How often a process is killed. */
const KILLS = Number(process.env.PORTICO_SLOT_KILLS ?? 3);
const WORKER = new URL('../../support/slot-worker.ts', import.meta.url).pathname;

describe('bodies in slots when processes are killed', { skip: withoutPostgres ?? false }, () => {
  test(`no acknowledged delivery loses its body (${KILLS} kills)`, async (t) => {
    const url = await postgresDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    const stored = new Set<string>();
    const ending = new Set<string>();
    const wrong: string[] = [];
    const start = (mode: string) => {
      const child = spawn(process.execPath, [WORKER, url, mode], { stdio: ['ignore', 'pipe', 'inherit'] });
      let acknowledged = 0;
      const lines = createInterface(child.stdout);
      const ended = Promise.all([once(child, 'exit'), once(lines, 'close')]);
      lines.on('line', (line) => {
        const [what, id = ''] = line.split(' ');
        if (what === 'stored') acknowledged++;
        if (what === 'wrong') wrong.push(id);
        (what === 'stored' ? stored : ending).add(id);
      });
      return {
        async kill() {
          // It works by now, however slow the machine is.
          while (acknowledged < 20 && child.exitCode === null) await delay(5);
          await delay(Math.random() * 100);
          child.kill('SIGKILL');
          await ended;
        },
      };
    };
    const steady = start('on');
    for (let i = 0; i < KILLS; i++) await start(i % 3 === 2 ? 'off' : 'on').kill();
    await steady.kill();

    assert.deepEqual(wrong, []);
    await using database = await openDatabase(url);
    const kept = [...stored].filter((id) => !ending.has(id));
    assert.deepEqual(await wrongBodies(database, kept), []);
    const all = (await database.deliveries.list({}, 10_000)).items.map(({ id }) => id);
    assert.deepEqual(await wrongBodies(database, all), []);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const used = await client.query('SELECT count(*)::int AS n FROM body_slots WHERE closed_at > 0');
      const copied = await client.query('SELECT count(*)::int AS n FROM deliveries WHERE slot IS NULL');
      t.diagnostic(
        `${stored.size} stored, ${kept.length} kept, ${used.rows[0].n} slots used, ${copied.rows[0].n} copied out of them`,
      );
      assert.ok(used.rows[0].n > 0);
    } finally {
      await client.end();
    }
  });
});
