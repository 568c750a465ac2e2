import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { withoutPostgres } from '../support/databases.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { inFull } from '../support/proof-settings.ts';
import { control } from '../support/source-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { send } from './kill/client.ts';

const SKIP = { skip: withoutPostgres ?? false, timeout: 240_000 };
/** Connections to each process; each sends some hundred deliveries a second at most. */
const CONNECTIONS = 8;
const PAUSE = 20;
/** So many deliveries are acknowledged before the first process is stopped, and after it goes on. */
const SOME = inFull ? 600 : 200;
/** How many attempts it has in hand at least when it is stopped. */
const IN_HAND = 5;

interface Outcome {
  /** The jobs that the stopped process had in hand and the other one has handled, with their histories: before and after it went on. */
  readonly taken: readonly unknown[];
  readonly later: readonly unknown[];
  /** The deliveries that both have begun. */
  readonly twice: number;
  /** How often the first process logged that it has lost a lease. */
  readonly lost: number;
  /** The status of every job at the end, and of how many acknowledged deliveries there is none. */
  readonly statuses: readonly unknown[];
  readonly missing: number;
}

/** Two processes under load; the first one is stopped beyond its leases until the other has done its work, and goes on. */
async function stopUnderLoad(main?: string): Promise<Outcome> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const server = cleanup.use(await sharedPostgres());
  const url = await server.createDatabase();
  const sql = (text: string) => server.sql(text, url);
  const start = (name: string): PorticoProcess =>
    cleanup.use(
      startPortico({
        cwd: folder,
        env: {
          DATABASE_URL: url,
          INTERFACES: 'webhook',
          CONFIG: join(import.meta.dirname, 'stopped/rated-handlers.ts'),
          NAME: name,
        },
        ...(main !== undefined && { main }),
      }),
    );
  const [first, second] = [start('first'), start('second')];
  await Promise.all([first.ready(), second.ready()]);

  const acknowledged: string[] = [];
  const load = new AbortController();
  const agent = new Agent({ keepAlive: true });
  cleanup.defer(() => agent.destroy());
  let sent = 0;
  const connection = async (to: PorticoProcess) => {
    while (!load.signal.aborted) {
      const token = `d${++sent}`;
      const data = { token, pause: sent % 60 };
      const body = JSON.stringify({ event: sent % 3 === 0 ? 'quick' : 'slow', data });
      const reply = await send(agent, 'POST', `${to.urls.webhook}/webhook`, body);
      if (reply.status === 200) acknowledged.push(token);
      await delay(Math.random() * PAUSE);
    }
  };
  const loading = Promise.all(
    [first, second].flatMap((each) => Array.from({ length: CONNECTIONS }, () => connection(each))),
  );
  const more = (count: number) => {
    const goal = acknowledged.length + count;
    return Promise.race([loading, waitFor('deliveries', () => acknowledged.length >= goal)]);
  };

  const log = join(folder, 'effects.log');
  const effects = (mark: string, name: string) =>
    (existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [])
      .map((line) => line.split(' '))
      .filter((fields) => fields[0] === mark && fields[3] === name)
      .map(([, token, attempt]) => `${token} ${attempt}`);
  const inHand = () => {
    const ended = new Set(effects('end', 'first'));
    return effects('begin', 'first').filter((each) => !ended.has(each));
  };
  await more(SOME);
  await waitFor('it to be stopped with attempts in hand', () => {
    first.child.kill('SIGSTOP');
    if (inHand().length >= IN_HAND) return true;
    first.child.kill('SIGCONT');
    return false;
  });

  const owner = `%:${first.child.pid}:%`;
  const died = `SELECT job FROM attempts WHERE outcome = 'crashed' AND process LIKE '${owner}'`;
  const count = async (text: string) => Number((await sql(text))[0]?.[0]);
  await waitFor('the other one to have taken all of its jobs', async () => {
    const held = await count(`SELECT count(*) FROM jobs WHERE status = 'open' AND owner LIKE '${owner}'`);
    const open = await count(`SELECT count(*) FROM jobs WHERE seq IN (${died}) AND status = 'open'`);
    return held === 0 && open === 0;
  });
  const numbers = (await sql(died)).map(([job]) => job).join();
  const rows = () =>
    sql(`SELECT jobs.*, (SELECT json_agg(a ORDER BY a.seq) FROM attempts AS a WHERE a.job = jobs.seq)::text
      FROM jobs WHERE seq IN (${numbers}) ORDER BY seq`);
  const taken = await rows();
  // Both go on under load.
  writeFileSync(join(folder, 'go'), '');
  first.child.kill('SIGCONT');
  await more(SOME);
  load.abort();
  await loading;
  await waitFor('its attempts to have ended', () => inHand().length === 0);
  await waitFor('all to be done', async () => {
    return (await count(`SELECT count(*) FROM jobs WHERE status = 'open'`)) === 0;
  });
  const later = await rows();
  const statuses = (await sql('SELECT DISTINCT status FROM jobs')).flat();
  const stored = await sql(`SELECT convert_from(body, 'UTF8')::json #>> '{data,token}' FROM deliveries`);
  const known = new Set(stored.flat());
  const tokensOf = (name: string) => new Set(effects('begin', name).map((each) => each.split(' ')[0]));
  const bySecond = tokensOf('second');
  for (const { child, exited } of [first, second]) {
    child.kill('SIGTERM');
    assert.equal(await exited(), 0);
  }
  return {
    taken,
    later,
    twice: [...tokensOf('first')].filter((token) => bySecond.has(token)).length,
    lost: first.logs().filter(({ msg }) => msg === 'lease lost, another process may handle the delivery')
      .length,
    statuses,
    missing: acknowledged.filter((token) => !known.has(token)).length,
  };
}

test(
  'of two processes under load one stops beyond its leases: what the other has done stays as it is',
  SKIP,
  async (t) => {
    const { taken, later, twice, lost, statuses, missing } = await stopUnderLoad();
    t.diagnostic(`${taken.length} jobs taken over, ${twice} deliveries handled by both, ${lost} leases lost`);
    assert.ok(taken.length >= IN_HAND && twice >= IN_HAND && lost >= IN_HAND);
    assert.deepEqual(later, taken);
    assert.deepEqual([statuses, missing], [['done'], 0]);
  },
);

control('without the fence of outcomes it does not', {
  ...SKIP,
  edits: [
    {
      file: 'src/sql/postgres-inbox/settle.ts',
      from: "'jobs.owner = given.owner AND jobs.attempts = given.attempt AND jobs.crashes = given.crashes'",
      to: "'true'",
    },
  ],
  async find(main) {
    const { taken, later } = await stopUnderLoad(main);
    assert.notDeepEqual(later, taken);
  },
});
