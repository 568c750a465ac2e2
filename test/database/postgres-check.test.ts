import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { main } from '../../src/main.ts';
import { checkPostgres, type Finding } from '../../src/sql/postgres-check/check.ts';
import { Connection } from '../../src/sql/postgres-pool/connection.ts';
import { blocks } from '../documents/documents.ts';
import { withoutPostgres } from '../support/databases.ts';
import { startPgBouncer, withoutPgBouncer } from '../support/pgbouncer.ts';
import { type Binaries, dumpableServer, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type CommandResult, runCommand } from '../support/run-command.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Longer than any check on a busy machine, in milliseconds. */
const PATIENCE = 120_000;
/** Every check, in order. */
const NAMES = [
  ...['version', 'session', 'primary', 'durable', 'settings', 'acknowledged', 'connections', 'schema'],
  ...[
    'row-locks',
    'read-committed',
    'advisory-locks',
    'notifications',
    'triggers',
    'row-versions',
    'lost-connection',
  ],
  ...['migrations', 'statements', 'users', 'relations', 'changes'],
  ...['inbox', 'enqueued', 'duplicates', 'claims', 'order'],
  'removal',
];

const servers: Readonly<Record<string, Binaries | undefined>> = {
  'npm ci': undefined,
  Debian: dumpableServer(),
};

/** The findings about a server: all, or those up to one check. */
async function findingsOf(url: string, { until = '', timeout = PATIENCE } = {}): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const { signal } = new AbortController();
  for await (const finding of checkPostgres(url, { signal, timeout })) {
    findings.push(finding);
    if (finding.check === until) break;
  }
  return findings;
}

/** The names of the findings that do not hold, with their verdicts. */
function othersOf(findings: readonly Finding[]): Readonly<Record<string, string>> {
  const others = findings.filter(({ verdict }) => verdict !== 'holds');
  return Object.fromEntries(others.map(({ check, verdict }) => [check, verdict]));
}

function findingOf(findings: readonly Finding[], name: string): Finding {
  const found = findings.find(({ check }) => check === name);
  assert.ok(found !== undefined, name);
  return found;
}

const LEFT = `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'portico%'`;

describe('portico database check', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  async function assertNothingLeft(url: string, of = server): Promise<void> {
    assert.deepEqual(await of.sql(LEFT, url), []);
    const [tables] = await of.sql(
      `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`,
      url,
    );
    assert.equal(Number(tables?.[0]), 0, 'no other schema was touched');
  }

  /** A role that may log in, and a URL of a database with it. */
  async function createRole(
    name: string,
    options = '',
  ): Promise<{ readonly direct: string; readonly url: string }> {
    await server.sql(`CREATE ROLE ${name} LOGIN ${options}`);
    const direct = await server.createDatabase();
    const url = new URL(direct);
    url.username = name;
    return { direct, url: url.href };
  }

  async function run(...args: readonly string[]): Promise<CommandResult> {
    await using folder = await temporaryFolder();
    return runCommand(['database', 'check', ...args], { cwd: folder.path });
  }

  for (const [from, binaries] of Object.entries(servers)) {
    const skip = from === 'Debian' && binaries === undefined ? 'needs the package postgresql' : false;
    test(`every promise holds on the PostgreSQL of ${from}`, { skip }, async () => {
      await using postgres = await startPostgres({ ...(binaries && { binaries }), sync: true });
      const url = await postgres.createDatabase();
      const { code, stdout, stderr } = await run(url, '--json');
      const { findings, ...counts } = JSON.parse(stdout) as { readonly findings: readonly Finding[] };
      assert.deepEqual(othersOf(findings), {}, stdout);
      assert.deepEqual(counts, { complete: true, holds: NAMES.length, fails: 0, unknown: 0 });
      assert.deepEqual(
        findings.map(({ check }) => check),
        NAMES,
      );
      assert.deepEqual([code, stderr], [0, '']);
      await assertNothingLeft(url, postgres);
      // Of a managed server, these settings say nothing.
      await postgres.sql(
        `CREATE FUNCTION aurora_version() RETURNS text LANGUAGE sql AS $$ SELECT '1' $$`,
        url,
      );
      const managed = await run(url);
      assert.match(managed.stdout, /^unknown {2}durable: Aurora, with fsync on/m);
      assert.match(managed.stdout, /^25 of 26 promises hold, 0 fail, 1 could not be tried\.$/m);
      assert.equal(managed.code, 3);
    });
  }

  test('every named statement for PostgreSQL runs', async () => {
    const folders = 'src/sql/{postgres,postgres-inbox}/*.ts';
    const texts = globSync(folders, { cwd: ROOT }).map((file) => readFileSync(join(ROOT, file), 'utf8'));
    const known = texts.flatMap((text) =>
      [...text.matchAll(/(?:\bname: |\bsettling\(|\bappend\()'([a-z][a-z-]+)'/g)].map(
        ([, name = '']) => name,
      ),
    );
    assert.ok(known.length > 20, known.join());
    const ran = new Set<string>();
    const { run: original } = Connection.prototype;
    Connection.prototype.run = function (statement, values) {
      if (statement.name !== undefined) ran.add(statement.name);
      return original.call(this, statement, values);
    };
    try {
      await findingsOf(await server.createDatabase());
    } finally {
      Connection.prototype.run = original;
    }
    assert.deepEqual(
      known.filter((name) => !ran.has(name)),
      // It follows only a settlement whose answer was lost.
      ['is-settled'],
      [...ran].join(),
    );
  });

  test('a server that does not sync fails, with 1 and the remedy', async () => {
    const url = await server.createDatabase();
    const { code, stdout } = await run(url);
    const guide = blocks('text').find(
      ({ path, text }) => path === 'docs/POSTGRESQL.md' && text.startsWith('holds'),
    );
    const lines = guide?.text.split('\n').filter((line) => line !== '…' && line !== '') ?? [];
    assert.equal(lines.length, 6);
    for (const line of lines) assert.ok(stdout.split('\n').includes(line), line);
    assert.equal(code, 1);
    await assertNothingLeft(url);
  });

  test('a replica fails as a primary, unless the URL names its primary too', async () => {
    await using primary = await startPostgres({ settings: { wal_level: 'replica' } });
    const url = await primary.createDatabase();
    await using replica = await startPostgres({ replicaOf: primary });
    const replicaUrl = url.replace(`:${primary.port}`, `:${replica.port}`);
    const findings = await findingsOf(replicaUrl);
    const others = othersOf(findings);
    assert.equal(others.primary, 'fails');
    assert.equal(findingOf(findings, 'primary').seen, 'the server is a replica');
    assert.equal(others.session, undefined);
    assert.equal(others.connections, undefined);
    assert.match(findingOf(findings, 'schema').seen, /^not tried: it needs primary$/);
    assert.equal(findings.length, NAMES.length - 1, 'nothing was there to remove');
    const both = url.replace('@127.0.0.1', `@127.0.0.1:${replica.port},127.0.0.1`);
    assert.deepEqual(othersOf(await findingsOf(both)), { durable: 'fails' });
    await assertNothingLeft(url, primary);
  });

  test('PgBouncer in session mode holds, in transaction mode the session fails', {
    skip: withoutPgBouncer ?? false,
  }, async () => {
    const url = await server.createDatabase();
    {
      await using pooler = await startPgBouncer(server.port, 'session', { default_pool_size: 60 });
      assert.deepEqual(othersOf(await findingsOf(pooler.url(url))), { durable: 'fails' });
    }
    await using pooler = await startPgBouncer(server.port, 'transaction');
    const findings = await findingsOf(pooler.url(url));
    const { session, durable, version, primary, ...rest } = othersOf(findings);
    assert.deepEqual([session, durable, version, primary], ['fails', 'fails', undefined, undefined]);
    assert.deepEqual([...new Set(Object.values(rest))], ['unknown']);
    assert.match(findingOf(findings, 'session').meaning ?? '', /pool_mode = session/);
    await assertNothingLeft(url);
  });

  test('a role that may create no schema fails there, and what needs none is tried', async () => {
    const { direct, url } = await createRole('modest');
    const findings = await findingsOf(url);
    const others = othersOf(findings);
    assert.equal(others.schema, 'fails');
    assert.match(findingOf(findings, 'schema').seen, /permission denied for database .* \(SQLSTATE 42501\)$/);
    for (const name of ['settings', 'notifications', 'advisory-locks', 'connections']) {
      assert.equal(others[name], undefined, name);
    }
    assert.equal(others.claims, 'unknown');
    await assertNothingLeft(direct);
  });

  test('a role with few connections, and one that only reads, fail with what to do', async () => {
    const { direct, url } = await createRole('few', 'CONNECTION LIMIT 6');
    // What the server says may contain the password, as here the name of the role.
    const secret = new URL(url);
    secret.password = 'few';
    const few = findingOf(await findingsOf(secret.href, { until: 'connections' }), 'connections');
    assert.deepEqual(
      [few.verdict, few.seen],
      ['fails', 'too many connections for role "******" (SQLSTATE 53300)'],
    );
    await server.sql('ALTER ROLE few SET default_transaction_read_only = on');
    const primary = findingOf(await findingsOf(url), 'primary');
    assert.equal(primary.seen, 'default_transaction_read_only is on');
    assert.match(primary.meaning ?? '', /turn default_transaction_read_only off/);
    await assertNothingLeft(direct);
  });

  /** Functions that a server does not have for a role, and the checks that then fail. */
  const taken: Readonly<Record<string, readonly string[]>> = {
    'pg_notify(text, text)': ['notifications', 'enqueued'],
    'pg_try_advisory_xact_lock(bigint)': ['advisory-locks', 'statements'],
    'lower(text)': ['triggers', 'statements'],
    // The client then leaves, which does the same.
    'pg_terminate_backend(integer, bigint)': [],
  };
  for (const [nth, [name, failing]] of Object.entries(taken).entries()) {
    test(`without ${name}, those that use it fail alone`, async () => {
      const { direct, url } = await createRole(`without_${nth}`);
      await server.sql(
        `GRANT CREATE ON DATABASE ${new URL(direct).pathname.slice(1)} TO without_${nth};
         REVOKE EXECUTE ON FUNCTION pg_catalog.${name} FROM PUBLIC`,
        direct,
      );
      const findings = await findingsOf(url);
      const others = othersOf(findings);
      for (const each of failing) {
        assert.equal(others[each], 'fails', each);
        assert.match(findingOf(findings, each).seen, /permission denied for function \w+/);
      }
      for (const each of ['row-locks', 'read-committed', 'changes', 'lost-connection', 'removal']) {
        if (name === 'lower(text)' && each === 'changes') continue;
        assert.equal(others[each], undefined, `${each} ${JSON.stringify(others)}`);
      }
      if (failing.length === 0)
        assert.match(findingOf(findings, 'lost-connection').seen, /^the client left: /);
      await assertNothingLeft(direct);
    });
  }

  /** What a server ignores or does otherwise, as a proxy rewrites it, and the check that finds it. */
  const faults: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
    'row-locks': [['FOR UPDATE SKIP LOCKED', '                      ']],
    'read-committed': [[`'read committed'`, `'serializable'  `]],
    notifications: [['NOTIFY portico_check', 'LISTEN portico_check']],
    'lost-connection': [['BEGIN\0', '     \0']],
    settings: [['SET statement_timeout', 'SET x.tement_timeout ']],
    // True, whatever other sessions hold.
    'advisory-locks': [['pg_try_advisory_lock(', '0 < abs             (']],
  };
  for (const [name, replacements] of Object.entries(faults)) {
    test(`a server with other ${name} is found`, async () => {
      await using proxy = await startProxy(server.port, replacements);
      const direct = await server.createDatabase();
      const url = new URL(direct);
      url.port = String(proxy.port);
      // A notification that never comes is awaited for a quarter of the time.
      const findings = await findingsOf(url.href, { until: name, timeout: 20_000 });
      const found = findingOf(findings, name);
      assert.equal(found.verdict, 'fails', JSON.stringify(findings));
      assert.ok(found.meaning !== null);
      await assertNothingLeft(direct);
    });
  }

  test('a server that hangs ends the check, which names the schema that is left', {
    skip: process.platform !== 'linux',
  }, async () => {
    await using hanging = await startPostgres();
    const url = await hanging.createDatabase();
    const findings: Finding[] = [];
    // It hangs in the midst of a check.
    let hangs = false;
    const { run: original } = Connection.prototype;
    Connection.prototype.run = function (statement, values) {
      const result = original.call(this, statement, values);
      if (statement.text.includes('CREATE TABLE locked')) {
        hangs = true;
        hanging.freeze(true);
      }
      return result;
    };
    const options = {
      signal: new AbortController().signal,
      get timeout() {
        return findings.some(({ check }) => check === 'schema') ? 1_000 : PATIENCE;
      },
    };
    try {
      for await (const finding of checkPostgres(url, options)) findings.push(finding);
    } finally {
      Connection.prototype.run = original;
    }
    assert.ok(hangs);
    hanging.freeze(false);
    const { verdict: hung, seen } = findingOf(findings, 'row-locks');
    assert.deepEqual([hung, seen], ['fails', 'no result within 1 s']);
    assert.equal(findingOf(findings, 'order').seen, 'not tried: the server does not answer any more');
    const [left] = await hanging.sql(LEFT, url);
    const { verdict, meaning } = findingOf(findings, 'removal');
    assert.equal(verdict, 'fails');
    assert.ok(meaning?.includes(`Remove it: DROP SCHEMA ${left?.[0]} CASCADE`), meaning ?? '');
  });

  test('Ctrl+C ends it with 130 and removes the schema', async () => {
    const url = await server.createDatabase();
    const listeners = new Set<() => void>();
    let stdout = '';
    const output = new Writable({
      write(chunk, _encoding, done) {
        stdout += chunk;
        if (String(chunk).includes('schema: made ')) for (const listener of listeners) listener();
        done();
      },
    });
    const code = await main(['database', 'check', url], {
      stdin: Readable.from([]),
      stdout: output,
      stderr: output,
      env: {},
      on: (_signal, listener) => listeners.add(listener),
      off: (_signal, listener) => listeners.delete(listener),
      exit: (code) => {
        throw new Error(`ended with ${code}`);
      },
    });
    assert.equal(code, 130, stdout);
    assert.match(stdout, /removal: removed portico_check_\w+\nInterrupted\.\n$/);
    assert.doesNotMatch(stdout, /row-locks|promises hold/);
    await assertNothingLeft(url);
  });

  for (const text of ['CREATE TABLE users', 'CREATE TABLE "books"', 'INSERT INTO deliveries']) {
    test(`an interruption in ${text} leaves nothing behind`, async () => {
      const url = await server.createDatabase();
      const controller = new AbortController();
      const { run: original } = Connection.prototype;
      Connection.prototype.run = function (statement, values) {
        if (statement.text.includes(text)) controller.abort();
        return original.call(this, statement, values);
      };
      const findings: Finding[] = [];
      try {
        const { signal } = controller;
        for await (const each of checkPostgres(url, { signal, timeout: PATIENCE })) findings.push(each);
      } finally {
        Connection.prototype.run = original;
      }
      assert.ok(controller.signal.aborted);
      assert.equal(findings.at(-1)?.check, 'removal');
      assert.equal(findings.at(-1)?.verdict, 'holds');
      await assertNothingLeft(url);
    });
  }

  test('without a server, or with a wrong call, it ends with 2; no output has the password', async () => {
    const password = 'Geheim%C3%A4-7!';
    const results = [
      await run(`postgres://portico:${password}@127.0.0.1:1/x`),
      await run(`postgres://portico:${password}@127.0.0.1:1,127.0.0.1:2/x?password=${password}`, '--json'),
      await run(`postgre://portico:${password}@127.0.0.1:1/x`),
      await run('sqlite:x.db'),
      await run('sqlite:x.db', 'more'),
      await run(),
    ];
    for (const { code, stdout, stderr } of results) {
      assert.equal(code, 2, stderr);
      assert.doesNotMatch(stdout + stderr, /Geheim/);
      assert.notEqual(stderr, '');
    }
    const url = new URL(await server.createDatabase());
    url.password = 'Geheim-7';
    const found = await run(url.href);
    assert.doesNotMatch(found.stdout + found.stderr, /Geheim/);
    assert.equal(found.code, 1);
  });
});

/** Starts a proxy that replaces texts of the client by others of the same length. */
async function startProxy(port: number, replacements: readonly (readonly [string, string])[]) {
  for (const [from, to] of replacements) assert.equal(from.length, to.length, `${from} ${to}`);
  const proxy = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    client.on('data', (data) => {
      const text = replacements.reduce(
        (all, [from, to]) => all.replaceAll(from, to),
        data.toString('latin1'),
      );
      upstream.write(text, 'latin1');
    });
    upstream.on('data', (data) => client.write(data));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port: own } = proxy.address() as { readonly port: number };
  return {
    port: own,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => proxy.close(() => resolve())),
  };
}
