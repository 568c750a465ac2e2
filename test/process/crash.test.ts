import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** `bad` ends its process, once the file `go` is there. */
const moduleThat = (end: string) => `
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
export default {
  limits: { webhook: { backoff: 0 } },
  webhook: { attempts: 2, handlers: {
    good: async () => { await sleep(existsSync('go') ? 50 : 2_000); },
    bad: async () => {
      while (!existsSync('go')) await sleep(5);
      ${end}
      await new Promise(() => {});
    },
  } },
};`;

interface Row {
  readonly target: string;
  readonly status: string;
  readonly attempts: number;
  readonly error: string | null;
}

/** A service in a folder of its own whose handler `bad` ends it. */
async function poisoned(end: string) {
  const folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), moduleThat(end));
  const start = () => startPortico({ cwd: folder.path, env: { INTERFACES: 'webhook' } });
  const jobs = () => {
    using db = new DatabaseSync(join(folder.path, 'portico.db'), { readOnly: true, timeout: 5_000 });
    return db.prepare('SELECT * FROM jobs ORDER BY seq').all() as unknown as readonly Row[];
  };
  const go = () => writeFile(join(folder.path, 'go'), '');
  return { start, jobs, go, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** Sends one bad delivery and eight good ones. */
async function send({ urls }: PorticoProcess): Promise<void> {
  const body = Array.from({ length: 9 }, (_, i) => JSON.stringify({ event: i === 4 ? 'bad' : 'good' }));
  const replies = body.map((each) => fetch(`${urls.webhook}/webhook`, { method: 'POST', body: each }));
  for (const { status } of await Promise.all(replies)) assert.equal(status, 200);
}

/** Starts the service again and again until nothing is open; gives how often it has ended. */
async function untilSettled(
  { start, jobs, go }: Awaited<ReturnType<typeof poisoned>>,
  onEnd: (ended: PorticoProcess, code: number | string) => void,
): Promise<number> {
  for (let ends = 0; ; ends++) {
    await using portico = start();
    if (ends === 0) {
      await portico.ready();
      await send(portico);
      await go();
    }
    let code: number | string | undefined;
    void portico.exited().then((given) => {
      code = given;
    });
    await waitFor(
      'the end of all jobs, or of the process',
      () => code !== undefined || jobs().every(({ status }) => status !== 'open'),
    );
    if (code === undefined) return ends;
    assert.ok(ends < 12, 'it ends again and again');
    onEnd(portico, code);
  }
}

const unexpected = {
  'a rejection that nobody handles': `Promise.reject(new Error('poison'));`,
  'an exception of a timer': `setTimeout(() => { throw new Error('poison'); }, 1);`,
};

for (const [kind, end] of Object.entries(unexpected)) {
  test(`${kind} ends the process with 1, and counts for its delivery alone`, async () => {
    await using service = await poisoned(end);
    const ends = await untilSettled(service, (portico, code) => {
      assert.equal(code, 1);
      const fatal = portico.logs().filter(({ level }) => level === 'fatal');
      assert.deepEqual(
        fatal.map(({ msg }) => msg),
        ['unexpected error, stopping'],
      );
      assert.match(JSON.stringify(fatal), /poison/);
      assert.match(portico.stderr, /portico: Ended by an unexpected error: Error: poison\. Exit code 1\.\n$/);
    });
    assert.equal(ends, 2);
    const jobs = service.jobs();
    assert.equal(jobs.length, 9);
    for (const { target, status, attempts, error } of jobs) {
      if (target === 'handler:good') assert.deepEqual([status, attempts], ['done', 1]);
      else assert.deepEqual([status, attempts, error], ['dead', 2, 'Error: poison']);
    }
  });
}

test('a delivery that kills its process is dead in the end, and those beside it are done', async () => {
  await using service = await poisoned(`process.kill(process.pid, 'SIGKILL');`);
  const ends = await untilSettled(service, (_portico, code) => assert.equal(code, 'SIGKILL'));
  assert.equal(ends, 5);
  for (const { target, status, error } of service.jobs()) {
    assert.equal(status, target === 'handler:good' ? 'done' : 'dead');
    if (status === 'dead') assert.match(error ?? '', /process crashed/);
  }
});
