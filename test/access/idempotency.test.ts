import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { linesOf } from '../rest/support/rest-door.ts';
import { postgresDatabase, withoutPostgres } from '../support/databases.ts';
import { runCommand } from '../support/run-command.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { AUDIENCE, bearer, ISSUER, startIssuer, tokens } from './support/tokens.ts';

const USERS = [
  { user: 'ann', password: 'ann-password', roles: ['users:write'] },
  { user: 'bob', password: 'bob-password', roles: ['users:write'] },
];
const basic = (user: string) => `Basic ${Buffer.from(`${user}:${user}-password`).toString('base64')}`;
const config = { api: { tokens }, management: { users: USERS } };

const engines: Readonly<Record<string, () => Promise<Readonly<Record<string, string>>>>> = {
  sqlite: async () => ({}),
  ...(withoutPostgres === undefined
    ? { postgres: async () => ({ DATABASE_URL: await postgresDatabase() }) }
    : {}),
};

async function start(env: Readonly<Record<string, string>>, data: object = config): Promise<TestService> {
  const service = await startTestService({
    database: 'file',
    module: `export default ${JSON.stringify(data)};`,
    env: { INTERFACES: 'rest', API_MAX_FAILURES: '0', ...env },
  });
  await service.listen();
  return service;
}

interface Sent {
  readonly authorization?: string | undefined;
  readonly type?: string;
  readonly prefer?: string;
}

async function post({ urls }: TestService, body: string, key: string, sent: Sent = {}) {
  const { authorization, type = 'application/json', prefer } = sent;
  const reply = await fetch(`${urls.rest}/users`, {
    method: 'POST',
    headers: {
      'content-type': type,
      'idempotency-key': key,
      ...(authorization === undefined ? {} : { authorization }),
      ...(prefer === undefined ? {} : { prefer }),
    },
    body,
  });
  const text = await reply.text();
  const { status, headers } = reply;
  return { status, code: headers.get('x-error-code'), at: headers.get('location'), text };
}

const ANN = '{"name":"Ann","email":"ann@example.com"}';
const EVE = '{"name":"Eve","email":"eve@example.com"}';

for (const [engine, place] of Object.entries(engines)) {
  describe(`Idempotency-Keys on ${engine}`, () => {
    test('each caller has keys of its own, however it is known', async () => {
      await using issuer = await startIssuer();
      await using service = await start({
        ...(await place()),
        API_REQUIRED: 'write',
        API_BASIC: 'users:read',
        API_JWT_ISSUER: ISSUER,
        API_JWT_AUDIENCE: AUDIENCE,
        API_JWT_JWKS: issuer.url,
      });
      const jwt = async (claims: Readonly<Record<string, unknown>>) =>
        `Bearer ${await issuer.sign({ scope: 'users:write', ...claims })}`;
      const anonymous = { sub: undefined };
      const callers = [
        bearer('both'),
        bearer('writer'),
        basic('ann'),
        basic('bob'),
        await jwt({ sub: 'ann' }),
        await jwt({ sub: 'both' }),
        await jwt({ sub: 'x\u0000y' }),
        await jwt({ sub: 'a'.repeat(3_000) }),
        await jwt({ sub: `${'a'.repeat(2_999)}b` }),
        // Without a subject the client is the caller, and never the user of the same name.
        await jwt({ ...anonymous, client_id: 'ann' }),
        // Without any name the token is.
        await jwt({ ...anonymous, jti: '1' }),
        await jwt({ ...anonymous, jti: '2' }),
      ];
      const replies = [];
      for (const authorization of callers) replies.push(await post(service, ANN, 'one', { authorization }));
      assert.deepEqual(
        replies.map(({ status }) => status),
        callers.map(() => 200),
      );
      assert.equal(new Set(replies.map(({ at }) => at)).size, callers.length);
      for (const [i, authorization] of callers.entries()) {
        assert.equal((await post(service, ANN, 'one', { authorization })).at, replies[i]?.at, `caller ${i}`);
        assert.equal((await post(service, EVE, 'one', { authorization })).code, 'IDEMPOTENCY_KEY_REUSED');
      }
      // Another token of the same subject is the same caller.
      const again = await jwt({ sub: 'ann', jti: 'another' });
      assert.equal((await post(service, ANN, 'one', { authorization: again })).at, replies[4]?.at);
    });

    test('whoever needs no credentials shares the keys of all without any', async () => {
      const env = await place();
      await using service = await start({ ...env, API_REQUIRED: 'none' });
      const first = await post(service, ANN, 'one');
      assert.equal((await post(service, ANN, 'one', { authorization: bearer('both') })).at, first.at);
      assert.equal((await post(service, EVE, 'one')).code, 'IDEMPOTENCY_KEY_REUSED');
    });

    test('a token that replaces another of its name has its keys', async () => {
      const env = { ...(await place()), API_REQUIRED: 'all' };
      await using service = await start(env);
      const run = async (...args: string[]) => {
        const options = { cwd: service.folder, env: { ...env, DATABASE_URL: service.databaseUrl } };
        const { code, stdout, stderr } = await runCommand(['tokens', ...args], options);
        assert.equal(code, 0, stderr);
        return `Bearer ${stdout.trim()}`;
      };
      const before = await run('create', 'ci', '--scopes', 'users:write');
      const first = await post(service, ANN, 'one', { authorization: before });
      assert.equal(first.status, 200);
      await run('revoke', 'ci');
      const after = await run('create', 'ci', '--scopes', 'users:write');
      assert.equal((await post(service, ANN, 'one', { authorization: after })).at, first.at);
      const other = await run('create', 'other', '--scopes', 'users:write');
      assert.notEqual((await post(service, ANN, 'one', { authorization: other })).at, first.at);
    });

    test('an import goes on for its caller, and loses no line of another', async () => {
      await using service = await start({ ...(await place()), API_REQUIRED: 'write' });
      const type = 'application/x-ndjson';
      const lines = (names: string) => [...names].map((n) => `{"name":"${n}","email":"e@x"}\n`).join('');
      const send = (names: string, who: 'both' | 'writer', prefer = 'return=minimal') =>
        post(service, lines(names), 'one', { type, prefer, authorization: bearer(who) });
      const last = (text: string) => linesOf(text).at(-1);
      const [minimal, all] = ['return=minimal', 'transaction=all, return=minimal'];
      for (const [names, who, prefer, expected] of [
        ['abc', 'both', minimal, { created: 3, refused: 0 }],
        // Another caller.
        ['xyz', 'writer', minimal, { created: 3, refused: 0 }],
        ['abc', 'both', minimal, { created: 0, refused: 0, skipped: 3 }],
        ['abcd', 'both', all, { created: 1, refused: 0, skipped: 3 }],
        ['abcdef', 'both', minimal, { created: 2, refused: 0, skipped: 4 }],
      ] as const) {
        const { status, text } = await send(names, who, prefer);
        assert.equal(status, 200, text);
        assert.deepEqual(last(text), expected, `${who}: ${names}`);
      }
      // Another import: from its first line on, from some line on, shorter, longer, empty.
      for (const names of ['xyzxyz', 'abcdex', 'abcdexg', 'abc', 'xbcdefg', '']) {
        for (const prefer of [minimal, all]) {
          const { status, code } = await send(names, 'both', prefer);
          assert.deepEqual([status, code], [422, 'IMPORT_KEY_REUSED'], `${prefer}: ${names}`);
        }
      }
      const { text } = await send('abcdef', 'both');
      assert.deepEqual(last(text), { created: 0, refused: 0, skipped: 6 });
      const stored = await (await fetch(`${service.urls.rest}/users`)).json();
      const { data } = stored as { readonly data: readonly { readonly name: string }[] };
      assert.equal(data.map(({ name }) => name).join(''), 'abcxyzdef');
    });

    test('lines that were refused are part of the beginning, and another format may have the same', async () => {
      await using service = await start({ ...(await place()), API_REQUIRED: 'none' });
      const asArray = { type: 'application/json', prefer: 'transaction=line, return=minimal' };
      const first = await post(service, `[{"name":""},${ANN}]`, 'one', asArray);
      assert.deepEqual(linesOf(first.text).at(-1), { created: 1, refused: 1 });
      const asLines = { type: 'application/x-ndjson', prefer: 'return=minimal' };
      const more = await post(service, `{"name":""}\n${ANN}\n${EVE}\n`, 'one', asLines);
      assert.deepEqual(linesOf(more.text).at(-1), { created: 1, refused: 0, skipped: 2 });
      const other = await post(service, `${EVE}\n${ANN}\n${EVE}\n${EVE}\n`, 'one', asLines);
      assert.equal(other.code, 'IMPORT_KEY_REUSED');
    });

    test('the command line is a caller of its own', async () => {
      const env = await place();
      await using service = await start({ ...env, API_REQUIRED: 'none' });
      const type = 'application/x-ndjson';
      assert.equal((await post(service, `${ANN}\n${EVE}\n`, 'one', { type })).status, 200);
      const run = (input: string) =>
        runCommand(['users', 'import', '-', '--format', 'ndjson', '--key', 'one'], {
          cwd: service.folder,
          env: { ...env, DATABASE_URL: service.databaseUrl },
          input,
        });
      assert.equal((await run(`${EVE}\n`)).stdout, 'Imported 1 user.\n');
      assert.equal((await run(`${EVE}\n${ANN}\n`)).stdout, 'Imported 1 user.\n');
      const refused = await run(`${ANN}\n${ANN}\n${ANN}\n`);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /different lines, up to line 2/);
    });
  });
}
