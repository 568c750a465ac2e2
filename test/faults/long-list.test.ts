import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { inFull } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const USERS = Number(process.env.PORTICO_LONG_LIST ?? (inFull ? 1_000_000 : 500_000));
const KEY = '{"id":';
const MEGABYTE = 1024 * 1024;
const MAX_GROWTH = 64;
/** The most users that are listed between the replies to two other requests, on average; on a busy machine less than half of it. */
const LISTED_MEANWHILE = 25_000;

/** The most memory a process has held so far, in bytes. */
function peakMemory(pid: number): number {
  const [, kilobytes = '0'] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

function fill(file: string): void {
  using db = new DatabaseSync(file);
  db.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${USERS})
    INSERT INTO users (name, email) SELECT 'User number ' || i, 'user' || i || '@example.com' FROM n`);
}

test(`GET /users with ${USERS} users: memory stays flat, other requests keep being answered`, {
  skip: existsSync('/proc/self/status') ? false : 'needs /proc',
}, async (t) => {
  await using folder = await temporaryFolder();
  {
    await using first = startPortico({ cwd: folder.path });
    await first.ready();
  }
  fill(join(folder.path, 'portico.db'));
  const tried: number[] = [];
  // The peak differs by up to 50 MB from process to process; a list that is held in memory shows in each of them.
  for (let i = 0; i < 5; i++) {
    const grown = await growthOf(folder.path, (text) => t.diagnostic(text));
    if (grown < MAX_GROWTH) return;
    tried.push(grown);
  }
  assert.fail(`megabytes by which each attempt grew: ${tried.join()}`);
});

/** The megabytes by which the peak of memory grows while one client reads the list and another reads nothing of it. */
async function growthOf(folder: string, tell: (text: string) => void): Promise<number> {
  await using portico = startPortico({ cwd: folder });
  await portico.ready();
  const { rest = '' } = portico.urls;
  const pid = portico.child.pid ?? 0;
  for (let i = 0; i < 50; i++) await (await fetch(`${rest}/users/${i}`)).text();
  const before = peakMemory(pid);

  // One reader that takes nothing, one that takes everything.
  const { hostname, port } = new URL(rest);
  const stalled = connect({ host: hostname, port: Number(port) }).pause();
  stalled.write(`GET /users HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  let listing = true;
  const list = countUsers(`${rest}/users`).finally(() => {
    listing = false;
  });
  let answered = 0;
  while (listing) {
    const reply = await fetch(`${rest}/users/${1 + (answered % USERS)}`);
    assert.match(await reply.text(), /"status":"success"/);
    answered++;
  }
  assert.equal(await list, USERS);
  stalled.destroy();
  assert.ok(answered > USERS / LISTED_MEANWHILE, `${answered} other requests were answered meanwhile`);
  const grown = (peakMemory(pid) - before) / MEGABYTE;
  tell(`${answered} other requests meanwhile; the peak of memory grew by ${grown.toFixed(1)} MB`);
  return grown;
}

/** Reads a list to its end, counting users without keeping them; checks how it begins and ends. */
async function countUsers(url: string): Promise<number> {
  const reply = await fetch(url);
  let count = 0;
  let head = '';
  let tail = '';
  for await (const chunk of reply.body ?? []) {
    // What the last chunk ended with is looked at again: a key may be cut in two.
    const text = tail + Buffer.from(chunk).toString('latin1');
    head ||= text.slice(0, 40);
    for (let i = text.indexOf(KEY); i !== -1; i = text.indexOf(KEY, i + 1)) count++;
    tail = text.slice(1 - KEY.length);
  }
  assert.ok(head.startsWith('{"status":"success","data":[{"id":1,'));
  assert.ok(tail.endsWith('}]}'));
  return count;
}
