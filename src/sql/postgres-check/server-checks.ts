import { DatabaseOpenError } from '../../core/errors.ts';
import { Connection, type Row, sqlState } from '../postgres-pool/connection.ts';
import { type Check, expectSeen, NotSeenError } from './bench.ts';

/** The oldest supported version, as the start requires it. */
const OLDEST = 130_000;
/** Connections of one process. */
const PROCESS_CONNECTIONS = 10;
const QUERY_CANCELED = '57014';

/** What the settings of each connection must be (see `Connection`). */
const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  statement_timeout: '5s',
  lock_timeout: '400ms',
  idle_in_transaction_session_timeout: '5s',
  enable_seqscan: 'off',
  default_transaction_isolation: 'read committed',
  transaction_isolation: 'read committed',
};

const SYNCHRONOUS: readonly unknown[] = ['on', 'remote_apply'];

/** The first checks: the server, the way to it, and what the role may do. */
export const SERVER_CHECKS: readonly Check[] = [
  {
    name: 'version',
    promise: 'The server is PostgreSQL 13 or newer',
    meaning: 'The start refuses this server. Upgrade it.',
    async run(bench) {
      const { number, version } = await bench.plain(
        `SELECT current_setting('server_version_num')::int AS number, version() AS version`,
      );
      const seen = String(version).replace(/ on .*/s, '');
      expectSeen(Number(number) >= OLDEST, seen);
      return seen;
    },
  },
  {
    name: 'session',
    promise: 'Each connection has its own session',
    meaning:
      'Prepared statements, settings and LISTEN belong to a session. The start refuses such a URL: use session mode (pool_mode = session), or name the server itself.',
    async run(bench) {
      try {
        await bench.use(Connection.open(bench.url, { readOnly: true, checkSession: true }));
      } catch (error) {
        if (!(error instanceof DatabaseOpenError)) throw error;
        throw new NotSeenError('a pooler gives each transaction another session');
      }
      return 'two connections keep their sessions and settings';
    },
  },
  {
    name: 'primary',
    promise: 'The server takes writes',
    meaning:
      'The start refuses this server. Name the primary in DATABASE_URL, and a replica in DATABASE_READ_URL.',
    async run(bench) {
      const { replica, readonly } = await bench.plain(
        `SELECT pg_is_in_recovery() AS replica, current_setting('default_transaction_read_only') AS readonly`,
      );
      expectSeen(replica === false, 'the server is a replica');
      const remedy = 'Writes fail: turn default_transaction_read_only off for the role and the database.';
      expectSeen(readonly === 'off', 'default_transaction_read_only is on', remedy);
      return 'the server is a primary';
    },
  },
  {
    name: 'durable',
    promise: 'The server syncs a commit to its disk',
    meaning:
      'A crash of the machine can lose acknowledged writes or damage the database. Turn fsync and full_page_writes on.',
    async run(bench) {
      const { fsync, pages, aurora, neon } = await bench.plain(`
        SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
          EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'aurora_version') AS aurora,
          current_setting('neon.tenant_id', true) IS NOT NULL AS neon`);
      const seen = `fsync ${fsync}, full_page_writes ${pages}`;
      // Both keep their log in a storage service, so that these settings of the server say nothing.
      const service = aurora === true ? 'Aurora' : neon === true ? 'Neon' : undefined;
      if (service !== undefined)
        throw new NotSeenError(`${service}, with ${seen}`, {
          verdict: 'unknown',
          meaning: `A storage service of ${service} keeps commits, which the settings of the server do not show. Its documentation says when a commit is durable.`,
        });
      expectSeen(fsync === 'on' && pages === 'on', seen);
      return seen;
    },
  },
  {
    name: 'settings',
    promise: 'A session can set timeouts and read committed isolation',
    needs: ['session'],
    meaning:
      'Portico bounds each statement and each wait for a lock by settings of its sessions; without them a request can take any time, and claims read rows that are out of date.',
    async run(bench) {
      const connection = await bench.connect();
      const names = Object.keys(SESSION_SETTINGS);
      const columns = names.map((name) => `current_setting('${name}')`).join();
      const [row = []] = await connection.run({ text: `SELECT ${columns}` }, []);
      const wrong = names.filter((name, i) => row[i] !== SESSION_SETTINGS[name]);
      expectSeen(
        wrong.length === 0,
        wrong.map((name) => `${name} is ${row[names.indexOf(name)]}`).join(', '),
      );
      await connection.run(
        { text: `SET plan_cache_mode = force_generic_plan; SET statement_timeout = '200ms'` },
        undefined,
      );
      const state = await connection.run({ text: 'SELECT pg_sleep(10)' }, []).then(() => undefined, sqlState);
      expectSeen(state === QUERY_CANCELED, 'a statement went on after its statement_timeout');
      return 'all are set, and statement_timeout ends a statement';
    },
  },
  {
    name: 'acknowledged',
    promise: 'A commit is answered once it is synced',
    needs: ['session'],
    meaning: 'A crash of the server can lose acknowledged writes: let sessions set synchronous_commit to on.',
    async run(bench) {
      const connection = await bench.connect();
      const text = `SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names')`;
      const [[mode, standbys] = []] = await connection.run({ text }, []);
      const seen = `synchronous_commit ${mode}`;
      expectSeen(SYNCHRONOUS.includes(mode), seen);
      return standbys === ''
        ? `${seen}; no commit waits for a replica, so a failover can lose the last acknowledged writes`
        : `${seen}; each commit also waits for the replicas of ${standbys}`;
    },
  },
  {
    name: 'connections',
    promise: 'The server gives a process its ten connections',
    needs: ['session'],
    meaning:
      'Under load, requests get 503. Raise max_connections, or the limit of the role, the database or the pooler.',
    async run(bench) {
      const opening = Array.from({ length: PROCESS_CONNECTIONS }, () => bench.connect());
      const opened = await Promise.allSettled(opening);
      const failed = opened.find((each) => each.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return `${PROCESS_CONNECTIONS} connections were open at once`;
    },
  },
  {
    name: 'schema',
    promise: 'The role may create a schema for this check',
    needs: ['session', 'primary'],
    meaning:
      'Nothing else can be tried. GRANT CREATE ON DATABASE to the role, or make it the owner of the database.',
    async run(bench) {
      const connection = await bench.connect();
      await connection.run({ text: `CREATE SCHEMA ${bench.schema}` }, undefined);
      const [[current] = []]: readonly Row[] = await connection.run({ text: 'SELECT current_schema()' }, []);
      expectSeen(
        current === bench.schema,
        `the current schema is ${current}`,
        'The server ignores search_path.',
      );
      return `made ${bench.schema}`;
    },
  },
];
