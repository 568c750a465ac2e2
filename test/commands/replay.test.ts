import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import type { DeliveryFilter } from '../../src/inbox/operations.ts';
import { deliveryPages } from '../../src/inbox/operations.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { fillSqlite } from '../support/fill-sqlite.ts';
import { MAIN, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** Handlers that write down which deliveries they had. */
const MODULE = `
import { appendFileSync } from 'node:fs';
const handler = ({ id }) => appendFileSync('handled.txt', id + '\\n');
export default { webhook: { handlers: { paid: handler, late: handler } } };
`;

async function workingFolder() {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  await writeFile(join(folder.path, 'portico.config.ts'), MODULE);
  const rest = cleanup.move();
  const url = `sqlite:${join(folder.path, 'portico.db')}` as const;
  return {
    path: folder.path,
    /** Opens the database beside whoever else has it open. */
    open: () => openDatabase(url),
    portico: (...args: readonly string[]) => runCommand(args, { cwd: folder.path }),
    handled: () => {
      const file = join(folder.path, 'handled.txt');
      return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** Fills a database with deliveries that are dead, by SQL because of their number. */
async function fillDead(folder: string, deliveries: number): Promise<void> {
  const file = join(folder, 'portico.db');
  await fillSqlite(file, { users: 1, deliveries, search: 'keys' });
  using db = new DatabaseSync(file);
  db.exec(`UPDATE deliveries SET event = 'paid', received_at = ${Date.now()};
    UPDATE jobs SET target = 'handler:paid', status = 'dead', due_at = ${Date.now()}, finished_at = ${Date.now()}`);
}

async function count({ deliveries }: Database, filter: DeliveryFilter): Promise<number> {
  let count = 0;
  for await (const { items } of deliveryPages(deliveries, filter)) count += items.length;
  return count;
}

test('by id: what can be replayed is, the rest is said', async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  const dead = await storeDeliveries(database, 'paid', 2);
  await settleAll(database, 'paid', 'dead');
  const done = await storeDeliveries(database, 'paid', 1);
  await settleAll(database, 'paid', 'done');
  const open = await storeDeliveries(database, 'paid', 1);
  const gone = await storeDeliveries(database, 'gone', 1);
  await settleAll(database, 'gone', 'dead');

  const good = await folder.portico('deliveries', 'replay', ...dead, ...done);
  assert.deepEqual([good.code, good.stdout], [0, '3 deliveries replayed.\n']);
  // A replay that takes longer than a moment shows its progress.
  assert.match(good.stderr, /^(Replaying .*\n)*$/);
  assert.equal(await count(database, { status: 'pending' }), 4);

  const bad = await folder.portico('deliveries', 'replay', ...open, ...gone, 'no\x1bsuch');
  assert.equal(bad.code, 1);
  assert.deepEqual(bad.stdout.split('\n'), [
    '0 deliveries replayed.',
    `${open[0]}: The delivery is still open; wait until it ends, or discard it.`,
    `${gone[0]}: Nothing handles this delivery now.`,
    'no\\u001bsuch: There is no such delivery.',
    '',
  ]);
  const json = await folder.portico('deliveries', 'replay', '--json', ...open, ...open);
  assert.deepEqual(
    [json.code, JSON.parse(json.stdout)],
    [
      1,
      {
        matched: 1,
        replayed: 0,
        refused: { open: 1 },
        examples: [{ id: open[0], reason: 'open' }],
        complete: true,
      },
    ],
  );
});

test('an unhandled delivery gets the handler that there is now', async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  const late = await storeDeliveries(database, 'late', 2, { jobs: [] });
  const never = await storeDeliveries(database, 'never', 1, { jobs: [] });
  const { code, stdout } = await folder.portico('deliveries', 'replay', '--status', 'unhandled');
  assert.equal(code, 0);
  assert.equal(stdout, '2 deliveries replayed.\n1 delivery was left. Nothing handles this delivery now.\n');
  for (const id of late) {
    assert.deepEqual(
      (await database.deliveries.find(id))?.jobs.map(({ target, status }) => [target, status]),
      [['handler:late', 'pending']],
    );
  }
  assert.equal((await database.deliveries.find(never[0] ?? ''))?.status, 'unhandled');
});

test('in bulk only what matches, and never what is open', async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  const old = Date.now() - 7_200_000;
  await storeDeliveries(database, 'paid', 3, { receivedAt: old });
  await storeDeliveries(database, 'paid', 5);
  await settleAll(database, 'paid', 'dead');
  await storeDeliveries(database, 'late', 2);
  await settleAll(database, 'late', 'dead');
  await storeDeliveries(database, 'late', 4);

  const recent = await folder.portico(
    'deliveries',
    'replay',
    '--dead',
    '--event',
    'paid',
    '--since',
    '1h',
    '--json',
  );
  assert.deepEqual([recent.code, JSON.parse(recent.stdout).replayed], [0, 5]);
  assert.equal(await count(database, { status: 'dead' }), 5);
  const late = await folder.portico('deliveries', 'replay', '--event', 'late');
  assert.equal(late.stdout, '2 deliveries replayed.\n');
  const none = await folder.portico('deliveries', 'replay', '--dead', '--event', 'late');
  assert.deepEqual([none.code, none.stdout], [1, 'Nothing matches; nothing was replayed.\n']);
});

test('discard: what is open or dead, nothing else', async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  const done = await storeDeliveries(database, 'paid', 1);
  await settleAll(database, 'paid', 'done');
  const open = await storeDeliveries(database, 'paid', 3);
  const { code, stdout } = await folder.portico('deliveries', 'discard', ...done, ...open.slice(0, 1));
  assert.equal(code, 1);
  assert.equal(stdout, `1 delivery discarded.\n${done[0]}: The delivery has no open or dead jobs.\n`);
  const rest = await folder.portico('deliveries', 'discard', '--event', 'paid');
  assert.equal(rest.stdout, '2 deliveries discarded.\n');
  assert.equal(await count(database, { status: 'discarded' }), 3);
  assert.equal(await count(database, { status: 'done' }), 1);

  const dead = await storeDeliveries(database, 'late', 2);
  await settleAll(database, 'late', 'dead');
  const json = await folder.portico('deliveries', 'discard', '--dead', '--json');
  const { matched, discarded } = JSON.parse(json.stdout);
  assert.deepEqual([json.code, matched, discarded], [0, 2, 2]);
  const again = await folder.portico('deliveries', 'discard', ...dead, '--json');
  assert.deepEqual([again.code, JSON.parse(again.stdout).refused], [1, { settled: 2 }]);
});

test('what the configuration cannot say stops a replay before it begins', async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  await storeDeliveries(database, 'paid', 1);
  await settleAll(database, 'paid', 'dead');
  await writeFile(
    join(folder.path, 'portico.config.ts'),
    `export default { webhook: { sources: { gh: { scheme: 'github', secrets: { env: 'GH_SECRET' } } } } };`,
  );
  const { code, stderr } = await folder.portico('deliveries', 'replay', '--dead');
  assert.equal(code, 2);
  assert.match(stderr, /GH_SECRET, which is not set/);
  assert.equal(await count(database, { status: 'dead' }), 1);
  // To look, nothing of it is needed.
  assert.equal((await folder.portico('deliveries', 'list')).code, 0);
});

const noTerminal =
  spawnSync('script', ['--version']).status !== 0 && 'needs script (apt-get install bsdutils)';

/** Runs a command on a terminal; `answer` is typed once it asks. */
async function onTerminal(cwd: string, args: readonly string[], answer?: string) {
  const words = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('script', ['-qec', words, '/dev/null'], { cwd, stdio: ['pipe', 'pipe', 'ignore'] });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  const closed = once(child, 'close');
  if (answer !== undefined) {
    await waitFor('the question', () => screen.includes('[y/N]'));
    child.stdin.write(answer);
  }
  const [code] = (await closed) as [number];
  return { screen, code };
}

test('2,000 dead deliveries, while a service handles them and takes new ones', {
  skip: noTerminal,
}, async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  const dead = await storeDeliveries(database, 'paid', 2_000);
  await settleAll(database, 'paid', 'dead');
  await using service = startPortico({ cwd: folder.path, args: ['serve', '--log-level', 'warn'] });
  await waitFor('the service', () => service.stderr.includes('webhook'));
  const { code, screen } = await onTerminal(folder.path, ['deliveries', 'replay', '--dead', '--yes']);
  assert.equal(code, 0);
  assert.match(screen, /Replaying 2,000 deliveries\.\r\n/);
  const lines = screen.split('\r\x1b[K').map(stripVTControlCharacters);
  assert.ok(lines.filter((line) => /^Replaying [\d,]+ of 2,000 \(\d+ %/.test(line)).length > 1, screen);
  assert.equal(lines.at(-1), '2,000 deliveries replayed.\r\n');
  await waitFor('all to be handled', () => folder.handled().length >= 2_000);
  await waitFor('all to be done', async () => (await count(database, { status: 'done' })) === 2_000);
  assert.deepEqual(folder.handled().toSorted(), dead.toSorted());
});

test('on a terminal the number is confirmed first', { skip: noTerminal }, async () => {
  await using folder = await workingFolder();
  await using database = await folder.open();
  await storeDeliveries(database, 'paid', 3);
  await settleAll(database, 'paid', 'dead');
  for (const answer of ['n\r', '\r', '\x03', '\x04', 'yess\r']) {
    const { screen, code } = await onTerminal(folder.path, ['deliveries', 'discard', '--dead'], answer);
    assert.ok(screen.includes('Discard 3 deliveries? [y/N]'), screen);
    assert.ok(screen.includes('Nothing was discarded.'), screen);
    assert.equal(code, 1);
    assert.equal(await count(database, { status: 'dead' }), 3);
  }
  const { code, screen } = await onTerminal(folder.path, ['deliveries', 'replay', '--dead'], 'y\r');
  assert.ok(screen.includes('3 deliveries replayed.'), screen);
  assert.equal(code, 0);
});

test('Ctrl+C ends a long replay between two batches, which says how far it came', async () => {
  await using folder = await workingFolder();
  await fillDead(folder.path, 8_000);
  await using database = await folder.open();
  await using replay = startPortico({ cwd: folder.path, args: ['deliveries', 'replay', '--dead'] });
  await waitFor('it to begin', () => replay.stderr.includes('Replaying 8,000 deliveries.'));
  // Twice, as wrappers send it that signal the group too.
  replay.child.kill('SIGINT');
  replay.child.kill('SIGINT');
  assert.equal(await replay.exited(), 130);
  const [, told = ''] = /^Stopped after ([\d,]+) of 8,000;/m.exec(replay.stdout) ?? [];
  const replayed = Number(told.replace(',', ''));
  assert.ok(replayed < 8_000, replay.stdout);
  assert.equal(await count(database, { status: 'pending' }), replayed);
  assert.equal(await count(database, { status: 'dead' }), 8_000 - replayed);
});

test('a service beside a long replay goes on taking deliveries', async () => {
  await using folder = await workingFolder();
  await fillDead(folder.path, 1_000);
  await using service = startPortico({ cwd: folder.path });
  await service.ready();
  await using replay = startPortico({ cwd: folder.path, args: ['deliveries', 'replay', '--dead'] });
  await waitFor('it to begin', () => replay.stderr.includes('Replaying 1,000 deliveries.'));
  let posted = 0;
  while (replay.child.exitCode === null) {
    const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"new"}' });
    assert.equal(reply.status, 200);
    posted++;
  }
  assert.ok(posted > 0);
  assert.equal(await replay.exited(), 0);
});
