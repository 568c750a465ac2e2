import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { fillSqlite } from '../support/fill-sqlite.ts';
import { runPortico, startPortico } from '../support/portico-process.ts';
import { runCommand } from '../support/run-command.ts';
import { settleAll, storeDeliveries } from '../support/stored-deliveries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** A folder with the database of a service that does not run. */
async function folderWith(fill: (database: Database) => Promise<void>) {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  await using database = await openDatabase(`sqlite:${join(folder.path, 'portico.db')}`);
  await fill(database);
  const rest = cleanup.move();
  const portico = (...args: readonly string[]) => runCommand(args, { cwd: folder.path });
  return { path: folder.path, portico, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

test('list: a table, the newest first, with a way to more of it', async () => {
  let ids: readonly string[] = [];
  await using folder = await folderWith(async (database) => {
    ids = await storeDeliveries(database, 'paid', 25, { source: 'shop' });
    await settleAll(database, 'paid', 'dead');
  });
  const first = await folder.portico('deliveries', 'list', '--status', 'dead', '--since', '1h');
  assert.equal(first.code, 0);
  const [title, ...rows] = first.stdout.trimEnd().split('\n');
  assert.match(title ?? '', /^ID {35} *STATUS {2}AGE {2}EVENT {2}SOURCE {2}TRIES {2}BYTES$/);
  assert.deepEqual(
    rows.map((row) => row.split(/ +/).filter((_, i) => i !== 2)),
    ids
      .toReversed()
      .slice(0, 20)
      .map((id, i) => [id, 'dead', 'paid', 'shop', '1', i < 15 ? '26' : '25']),
  );
  const [, more = ''] = /^More: portico (deliveries list .*)$/m.exec(first.stderr) ?? [];
  assert.match(more, /^deliveries list --status dead --since 1h --before \d+$/);
  const rest = await folder.portico(...more.split(' '));
  assert.equal(rest.stdout.trimEnd().split('\n').length, 6);
  assert.equal(rest.stderr, '');
});

test('list: FORCE_COLOR sets the title off, and NO_COLOR does not', async () => {
  await using folder = await folderWith(async (database) => {
    await storeDeliveries(database, 'paid', 1);
  });
  const list = (env: Readonly<Record<string, string>>) =>
    runCommand(['deliveries', 'list'], { cwd: folder.path, env });
  const [title = ''] = (await list({ FORCE_COLOR: '1' })).stdout.split('\n');
  assert.ok(title.startsWith('\x1b[1mID ') && title.endsWith('BYTES\x1b[22m'), title);
  assert.match((await list({ NO_COLOR: '1' })).stdout, /^ID /);
});

test('list and show: the time that a delivery waits for', async () => {
  const runAt = Math.floor(Date.now() / 60_000) * 60_000 + 7_200_000;
  const iso = new Date(runAt).toISOString();
  let id = '';
  await using folder = await folderWith(async (database) => {
    const jobs = [{ target: 'handler:later', orderKey: null, runAt }];
    [id = ''] = await storeDeliveries(database, 'later', 1, { jobs });
  });
  const [, row = ''] = (await folder.portico('deliveries', 'list')).stdout.split('\n');
  assert.ok(row.includes(`  pending until ${iso.slice(0, 16)}Z  `), row);
  const { items } = JSON.parse((await folder.portico('deliveries', 'list', '--json')).stdout);
  assert.deepEqual([items[0].status, items[0].plannedAt], ['pending', iso]);
  const shown = (await folder.portico('deliveries', 'show', id)).stdout;
  assert.match(shown, /^Status {4}pending$/m);
  assert.ok(shown.includes(`handler:later: pending, 0 attempts, planned in 1h (${iso})`), shown);
});

test('list --json: one document, in pages as the table', async () => {
  let ids: readonly string[] = [];
  await using folder = await folderWith(async (database) => {
    ids = await storeDeliveries(database, 'paid', 3);
  });
  const { stdout } = await folder.portico('deliveries', 'list', '--json', '--limit=2');
  const { items, next } = JSON.parse(stdout);
  assert.deepEqual(
    items.map(({ id, status }: Record<string, string>) => [id, status]),
    [
      [ids[2], 'pending'],
      [ids[1], 'pending'],
    ],
  );
  const rest = JSON.parse((await folder.portico('deliveries', 'list', '--json', `--before=${next}`)).stdout);
  assert.equal(rest.items.length, 1);
  assert.equal(rest.next, null);
  const none = await folder.portico('deliveries', 'list', '--json', '--event', 'none');
  assert.deepEqual([none.code, JSON.parse(none.stdout)], [0, { items: [], next: null }]);
  const empty = await folder.portico('deliveries', 'list', '--event', 'none');
  assert.deepEqual(empty, { code: 0, stdout: '', stderr: 'No delivery matches.\n' });
});

test('a long list ends when its reader has enough', async () => {
  await using folder = await folderWith(async () => {});
  await fillSqlite(join(folder.path, 'portico.db'), { users: 1, deliveries: 20_000, search: 'keys' });
  const list = startPortico({ cwd: folder.path, args: ['deliveries', 'list', '--limit', '20000'] });
  await waitFor('the first rows', () => list.stdout.includes('filled'));
  list.child.stdout?.destroy();
  assert.equal(await list.exited(), 0);
  assert.equal(list.stderr, '');
});

test('show: the delivery, its jobs, and its body as it came', async () => {
  const body = Buffer.from('{"event":"paid", "data":{"n":12345678901234567890}}');
  let id = '';
  await using folder = await folderWith(async (database) => {
    [id = ''] = await storeDeliveries(database, 'paid', 1, { body });
    await settleAll(database, 'paid', 'dead');
  });
  const text = await folder.portico('deliveries', 'show', id);
  assert.equal(text.code, 0);
  assert.match(text.stdout, /^Delivery {2}[0-9a-f-]{36}\nStatus {4}dead\nEvent {5}paid\n/);
  assert.match(
    text.stdout,
    /\n {2}handler:paid: dead, 1 attempt, ended 2\S+\n {4}1 {2}2\S+Z {2}7 ms {2}failed, dead {2}test\n {7}Error: not today\n/,
  );
  assert.ok(text.stdout.endsWith('"data": {\n    "n": 12345678901234567890\n  }\n}\n'));
  const raw = await folder.portico('deliveries', 'show', id, '--raw');
  assert.equal(raw.stdout, body.toString());
  const json = await folder.portico('deliveries', 'show', id, '--json');
  assert.ok(json.stdout.includes(`"body":${body}`));
  assert.equal(JSON.parse(json.stdout).jobs[0].error, 'Error: not today');
  const unknown = await folder.portico('deliveries', 'show', 'nothing');
  assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
  assert.match(unknown.stderr, /^There is no delivery nothing/);
});

test('a delivery is named by the beginning of its id too, and by the id of its sender', async () => {
  const ids = ['0199aaaa-1', '0199aaab-2', '0199bbbb-3'];
  await using folder = await folderWith(async (database) => {
    for (const [i, id] of ids.entries()) {
      const source = i === 0 ? 'shop' : '';
      await storeDeliveries(database, 'paid', 1, { id, source, dedupKey: i < 2 ? 'order-7' : 'order-8' });
    }
  });
  const show = (name: string) => folder.portico('deliveries', 'show', name);
  for (const name of ['0199b', 'order-8'])
    assert.match((await show(name)).stdout, /^Delivery {2}0199bbbb-3\n/);
  for (const name of ['0199aaa', 'order-7']) {
    const { code, stdout, stderr } = await show(name);
    assert.deepEqual([code, stdout], [2, '']);
    const [title, ...lines] = stderr.trimEnd().split('\n');
    assert.equal(title, `portico: "${name}" names more than one delivery:`);
    assert.deepEqual(lines.map((line) => line.replace(/ {2}2\d{3}-\S+Z {2}/, ' ')).sort(), [
      '  0199aaaa-1 paid',
      '  0199aaab-2 paid',
    ]);
  }
  const mixed = await folder.portico('deliveries', 'discard', 'order-8', '0199aaa');
  assert.deepEqual([mixed.code, mixed.stdout], [2, ''], 'then nothing is changed');
  const twice = await folder.portico('deliveries', 'discard', '0199b', 'order-8');
  assert.deepEqual(twice, { code: 0, stdout: '1 delivery discarded.\n', stderr: '' });
});

test('show: when the next attempt is, and how often a process has ended during one', async () => {
  let id = '';
  await using folder = await folderWith(async (database) => {
    [id = ''] = await storeDeliveries(database, 'paid', 1);
    const now = Date.now() + 1_000;
    const [job] = await database.inbox.claim('handler:paid', 1, 'test', 1_000, { now });
    assert.ok(job);
    await database.inbox.settle(job, 'test', { kind: 'crashed' }, now);
    const [again] = await database.inbox.claim('handler:paid', 1, 'test', 1_000, { now });
    assert.ok(again);
    const outcome = { kind: 'retry', wait: 7_200_000, error: 'Error: later' } as const;
    await database.inbox.settle(again, 'test', outcome, now);
  });
  const { stdout } = await folder.portico('deliveries', 'show', id);
  assert.match(
    stdout,
    /handler:paid: pending, 1 attempt, 1 crash, next try in (?:1h|2h) \(2\S+\)\n {4}last error: Error: later/,
  );
});

test('the configuration says where the database is, in every way it has', async () => {
  await using folder = await folderWith((database) => storeDeliveries(database, 'paid', 1).then(() => {}));
  await using elsewhere = await temporaryFolder();
  const url = `sqlite:${join(folder.path, 'portico.db')}`;
  const list = ['deliveries', 'list', '--json'];
  const count = ({ stdout }: { readonly stdout: string }) => JSON.parse(stdout).items.length;
  assert.equal(count(await runCommand([...list, '--database-url', url], { cwd: elsewhere.path })), 1);
  assert.equal(count(await runCommand(list, { cwd: elsewhere.path, env: { DATABASE_URL: url } })), 1);
  await writeFile(
    join(elsewhere.path, 'portico.config.ts'),
    `export default { database: { url: ${JSON.stringify(url)} } };`,
  );
  assert.equal(count(await runCommand(list, { cwd: elsewhere.path })), 1);
});

test('a folder without a database is said, and stays without one', async () => {
  await using folder = await temporaryFolder();
  const { code, stdout, stderr } = await runPortico(['deliveries', 'list'], { cwd: folder.path });
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /^portico: There is no database at .*portico\.db; go to the folder of the service/);
  const again = await runPortico(['deliveries', 'list'], { cwd: folder.path });
  assert.equal(again.code, 2);
  const memory = await runCommand(['deliveries', 'list', '--database-url=sqlite::memory:'], {
    cwd: folder.path,
  });
  assert.match(memory.stderr, /which only the service itself can read/);
});

test('wrong usage is exit code 2, with what may be meant', async () => {
  await using folder = await temporaryFolder();
  for (const [args, message] of [
    [[], 'deliveries needs one of list, show, tail, replay, discard after it'],
    [['lst'], '"lst" is not one of list, show, tail, replay, discard; did you mean list?'],
    [['list', '--statsu', 'dead'], '"--statsu" is not an option of deliveries list; did you mean --status?'],
    [['list', '--database-ulr=x'], 'did you mean --database-url?'],
    [['list', '--status', 'deat'], 'did you mean dead?'],
    [['list', '--limit', '0'], '--limit must be a whole number above 0, not "0"'],
    [['list', 'x'], 'deliveries list takes nothing but options'],
    [['show'], 'show needs the id of a delivery'],
    [['show', 'a', '--raw', '--json'], '--raw and --json exclude each other'],
    [['replay'], 'select deliveries by id, or with --dead'],
    [['replay', '--yes'], 'select deliveries by id, or with --dead'],
    [['replay', 'a', '--dead'], 'give either ids or a filter, not both'],
    [['discard', '--dead', '--status', 'pending'], '--dead and --status mean different deliveries'],
    [['tail', '--since', '1h'], '"--since" is not an option of deliveries tail'],
  ] as const) {
    const { code, stdout, stderr } = await runCommand(['deliveries', ...args], { cwd: folder.path });
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.ok(stderr.startsWith('portico: ') && stderr.includes(message), stderr);
    assert.match(stderr, /portico help deliveries/);
  }
});

test('help tells how a command is called, and about one part alone', async () => {
  await using folder = await temporaryFolder();
  const help = async (...args: readonly string[]) => {
    const { code, stdout } = await runCommand(args, { cwd: folder.path });
    assert.equal(code, 0, args.join(' '));
    return stdout;
  };
  const all = await help('help', 'deliveries');
  assert.equal(all.split('Usage: portico deliveries ').length, 6);
  assert.equal(await help('deliveries', '--help'), all);
  const replay = await help('deliveries', 'replay', '--dead', '--help');
  assert.match(replay, /^Usage: portico deliveries replay \[id\.\.\.\]/);
  assert.doesNotMatch(replay, /deliveries list/);
  assert.match(await help('send', '-h'), /^Usage: portico send /);
  assert.match(await help('--help'), /^Usage: portico \[command\]/);
});
