import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { tracedProcess, withoutStrace } from '../support/broken-machine.ts';
import { CHILD_ENVIRONMENT, MAIN, runPortico, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// Nothing but the mode that a file is created with keeps others out.
process.umask(0);

const OTHERS = 0o077;
const CALLS =
  'openat,open,creat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,mkdir,mkdirat,chmod,fchmod,fchmodat,?fchmodat2';

/** A file or folder that came to be, or that was given another mode. */
interface Made {
  readonly path: string;
  readonly mode: number;
}

/** What was made below a folder, with the mode that it had from its first moment on, and after each change of it. */
function madeIn(trace: string, folder: string, before: ReadonlySet<string>): readonly Made[] {
  const there = new Set(before);
  const made: Made[] = [];
  for (const line of trace.split('\n')) {
    const [, call = '', words = '', end = ''] =
      /^\d+ +(\w+)\((.*?)(?:\) += (-?\d+)?.*|<unfinished .*)$/.exec(line) ?? [];
    if (end.startsWith('-')) continue;
    const paths = [...words.matchAll(/"((?:[^"\\]|\\.)*)"|\d+<([^>]*)>/g)]
      .map(([, quoted, descriptor]) => resolve(folder, quoted ?? descriptor ?? ''))
      .filter((path) => path.startsWith(`${folder}/`));
    const [path, to] = paths;
    const octal = /, (0[0-7]*)(?:, |$|\))/.exec(words)?.[1];
    const mode = Number.parseInt(octal ?? 'none', 8);
    if (path === undefined) continue;
    if (call.startsWith('unlink')) there.delete(path);
    else if (call.startsWith('rename') || call.startsWith('link')) {
      if (call.startsWith('rename')) there.delete(path);
      there.add(to ?? '');
    } else if (call.startsWith('mkdir') || (/chmod/.test(call) && !Number.isNaN(mode)))
      made.push({ path, mode });
    else if (/O_CREAT/.test(words) && !there.has(path)) {
      there.add(path);
      made.push({ path, mode });
    }
  }
  return made;
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map(({ parentPath, name }) =>
    join(parentPath, name),
  );
}

/** The words in front of a command that has its calls traced into a file. */
const tracer = (file: string) => ['strace', '-f', '-y', '-qq', '-o', file, '-e', `trace=${CALLS}`];

test('what commands and the service make is for its owner alone from its first moment on', {
  skip: withoutStrace(),
}, async () => {
  await using place = await temporaryFolder();
  await using traces = await temporaryFolder();
  const folder = place.path;
  const seen: string[] = [];
  const check = (trace: string, before: ReadonlySet<string>, what: string) => {
    const made = madeIn(readFileSync(trace, 'utf8'), folder, before);
    for (const { path, mode } of made) {
      assert.equal(mode & OTHERS, 0, `${what}: ${path} is made with 0${mode.toString(8)}`);
      seen.push(path.slice(folder.length + 1));
    }
  };
  const run = async (...args: readonly string[]) => {
    const before = new Set(filesIn(folder));
    const trace = join(traces.path, `${args[0]}-${before.size}`);
    const [command = '', ...words] = [...tracer(trace), process.execPath, MAIN, ...args];
    const child = spawn(command, words, { cwd: folder, env: { ...CHILD_ENVIRONMENT }, stdio: 'ignore' });
    const [code] = (await once(child, 'close')) as [number];
    assert.equal(code, 0, args.join(' '));
    check(trace, before, args.join(' '));
  };
  {
    const trace = join(traces.path, 'serve');
    await using portico = startPortico({
      cwd: folder,
      wrapper: tracer(trace),
      env: {
        BACKUP_EVERY: '1d',
        INTERFACES: 'rest,management',
      },
    });
    await portico.ready();
    await waitFor('the backup', () => portico.logs().some(({ msg }) => msg === 'backup completed'));
    process.kill(tracedProcess(portico.child.pid ?? 0), 'SIGTERM');
    assert.equal(await portico.exited(), 0);
    check(trace, new Set(), 'serve');
  }
  await run('backup', 'one.db');
  await run('restore', 'one.db', '--yes');
  await run('restore', 'one.db', '--yes', '--database-url', 'sqlite:new.db');
  await run('move', '--to', 'sqlite:moved.db');
  await run('migrate', '--database-url', 'sqlite:migrated.db');
  await run('migrate', '--database-url', 'sqlite:file:by-url.db?cache=private');
  await run('users', 'export', 'users.csv');
  for (const name of [
    'portico.db',
    'portico.db-service',
    'portico.db-service.json',
    'backups',
    'one.db.partial',
    'portico.db.restoring',
    'new.db',
    'new.db.restoring',
    'moved.db',
    'migrated.db',
    'by-url.db',
    'users.csv.part',
  ]) {
    assert.ok(seen.includes(name), `${name} was seen; ${seen.join()}`);
  }
  for (const path of filesIn(folder)) assert.equal(statSync(path).mode & OTHERS, 0, path);
});

test('the WAL, its index and the backups of a database that others may read are for it and its group', async () => {
  await using place = await temporaryFolder();
  const at = (name: string) => join(place.path, name);
  const mode = (name: string) => (statSync(at(name)).mode & 0o777).toString(8);
  await using portico = startPortico({ cwd: place.path });
  await portico.ready();
  assert.deepEqual(['portico.db', 'portico.db-wal', 'portico.db-shm'].map(mode), ['600', '600', '600']);
  chmodSync(at('portico.db'), 0o644);
  assert.equal((await runPortico(['backup', 'one.db'], { cwd: place.path })).code, 0);
  assert.equal(mode('one.db'), '640', 'the group may read the database');
  portico.child.kill();
  assert.equal(await portico.exited(), 0);
  assert.equal((await runPortico(['restore', 'one.db', '--yes'], { cwd: place.path })).code, 0);
  assert.equal(mode('portico.db'), '644', 'what was there decides');
});

test('an export that goes on in a file that others may read is for its owner alone', async () => {
  await using place = await temporaryFolder();
  assert.equal((await runPortico(['migrate'], { cwd: place.path })).code, 0);
  writeFileSync(join(place.path, 'users.csv.part'), 'left behind', { mode: 0o644 });
  const { code, stderr } = await runPortico(['users', 'export', 'users.csv'], { cwd: place.path });
  assert.equal(code, 0, stderr);
  assert.equal(statSync(join(place.path, 'users.csv')).mode & OTHERS, 0);
});

test('a start says which files others may read, and what to run', async () => {
  await using place = await temporaryFolder();
  const at = (name: string) => join(place.path, name);
  const start = async () => {
    await using portico = startPortico({ cwd: place.path, env: { BACKUP_EVERY: '1d' } });
    await portico.ready();
    await waitFor(
      'the backup',
      () => existsSync(at('backups')) && readdirSync(at('backups')).some((name) => name.endsWith('.db')),
    );
    portico.child.kill();
    assert.equal(await portico.exited(), 0);
    return portico.logs().filter(({ msg }) => /others .* read/.test(String(msg)));
  };
  assert.deepEqual(await start(), []);
  const [backup = ''] = readdirSync(at('backups'));
  // A group that may read is often on purpose, a volume of Kubernetes has one.
  chmodSync(at('portico.db'), 0o660);
  assert.deepEqual(await start(), []);
  chmodSync(at('portico.db'), 0o644);
  chmodSync(join(at('backups'), backup), 0o604);
  writeFileSync(at("portico.db.before-restore-it's old"), '');
  const [warning, ...more] = await start();
  assert.deepEqual(more, []);
  assert.equal(warning?.level, 'warn');
  const names = [
    'portico.db',
    'portico.db-wal',
    'portico.db-shm',
    "portico.db.before-restore-it's old",
    `backups/${backup}`,
  ];
  assert.deepEqual(warning?.files, names.map(at));
  // What it says is what a shell takes.
  const shell = spawn('sh', ['-c', `umask 0; touch portico.db-wal portico.db-shm; ${warning?.run}`], {
    cwd: place.path,
  });
  const [code] = (await once(shell, 'close')) as [number];
  assert.equal(code, 0);
  for (const name of names) assert.equal(statSync(at(name)).mode & OTHERS, 0, name);
});
