import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { crawl } from './crawl.ts';

// A secret planted wherever one can be, each with this in it, must turn up nowhere.
const CANARY = 'c4n4ry';
const secret = (where: string) => `${CANARY}-${where}`;

const OPEN = {
  MANAGEMENT_INCLUDE: '*',
  MANAGEMENT_SHOW_VALUES: 'always',
  MANAGEMENT_SHOW_DETAILS: 'always',
  MANAGEMENT_INFO: 'build,git,node,os,process',
  MANAGEMENT_ENDPOINT_ACCESS: 'heapdump=read-only,cpuprofile=read-only,shutdown=unrestricted',
  MANAGEMENT_MAX_FAILED_LOGINS: '0',
  LOG_LEVEL: 'trace',
};
const BASIC = {
  authorization: `Basic ${Buffer.from(`ops:${secret('password')}`).toString('base64')}`,
};

/** Variables that a platform may set, some of them with names that tell nothing. */
const VARIABLES = {
  MY_API_TOKEN: secret('token'),
  DB_PASS: secret('pass'),
  NPM_CONFIG__AUTH: secret('auth'),
  REPLICA: `postgres://me:${secret('replica')}@db.example/x`,
  PROXY: `http://${secret('proxy')}@proxy.example:3128`,
  DSN_LIKE: `host=db user=me password=${secret('dsn')} port=1`,
  CALLBACK: `https://h.example/?a=1&access_token=${secret('query')}`,
  npm_lifecycle_script: `portico serve --webhook-secret ${secret('webhook')} --x`,
  HOOK: secret('source'),
};

const MODULE = `
const known = ${JSON.stringify(secret('password'))};
export default {
  management: {
    users: [{ user: 'second', password: ${JSON.stringify(secret('second'))}, roles: ['ops'] }],
    healthChecks: {
      failing: () => { throw new Error('cannot reach postgres://me:${secret('check')}@db.example/x password=' + known); },
      late: async () => { throw new Error('refused: token=${secret('late')}'); },
    },
    endpoints: [
      { id: 'failing', read: () => { throw new Error('inside: ' + known); } },
      { id: 'wrong', read: async () => { throw { headers: { authorization: ${JSON.stringify(secret('thrown'))} } }; } },
    ],
  },
  webhook: {
    sources: { hook: { scheme: 'github', secrets: [{ env: 'HOOK' }, ${JSON.stringify(secret('literal'))}] } },
    handlers: { fails: (delivery, { log }) => {
      log.info({ headers: { Authorization: ${JSON.stringify(secret('handler'))} } }, 'saw ' + known);
      throw Object.assign(new Error('handler: ' + known), { config: { headers: { Cookie: ${JSON.stringify(secret('cookie'))} } } });
    } },
  },
};`;

/** Requests to every door that carry secrets where clients put them, right and wrong ones. */
async function knock(urls: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const headers = {
    ...BASIC,
    cookie: `id=${secret('sent-cookie')}`,
    'x-api-key': secret('sent-key'),
    'x-hub-signature-256': `sha256=${secret('signature')}`,
    referer: `https://me:${secret('referer')}@h.example/?token=${secret('referer')}`,
  };
  const query = `?access_token=${secret('sent-query')}&password=${secret('sent-password')}`;
  const { graphql, rest, management, webhook } = urls;
  const token = { 'x-webhook-token': secret('webhook') };
  const asked: [string, RequestInit][] = [
    [`${rest}/users${query}`, {}],
    [`${rest}/nope${query}`, {}],
    [`${rest}/users`, { method: 'POST', body: `{"password":"${secret('body')}"` }],
    [`${graphql}/graphql${query}`, {}],
    [`${graphql}/graphql`, { method: 'POST', body: `{"query":"{ ${CANARY.replace('4', 'a')} }"}` }],
    [`${graphql}/nope${query}`, {}],
    [`${webhook}/webhook`, { method: 'POST', body: '{"event":"fails"}', headers: token }],
    [`${webhook}/webhook`, { method: 'POST', body: '{', headers: token }],
    [`${webhook}/webhook`, { method: 'POST', body: '{}', headers: { 'x-webhook-token': secret('wrong') } }],
    [`${webhook}/webhook/hook`, { method: 'POST', body: '{}' }],
    [`${management}/actuator/nope${query}`, {}],
    [`${management}/actuator/failing${query}`, {}],
    [`${management}/actuator/wrong`, {}],
    [`${management}/actuator/env?pattern=(`, {}],
    [`${management}/actuator/loggers/rest`, { method: 'POST', body: `{"${secret('key')}":1}` }],
    [`${management}/actuator/env`, { headers: { authorization: `Basic ${secret('garbage')}` } }],
  ];
  const texts: string[] = [];
  for (const [url, init] of asked) {
    const response = await fetch(url, { ...init, headers: { ...headers, ...init.headers } });
    texts.push(`${url}: ${JSON.stringify([...response.headers])} ${await response.text()}`);
  }
  return texts;
}

function assertClean(what: string, text: string): void {
  const at = text.indexOf(CANARY);
  assert.equal(at, -1, `${what} shows …${text.slice(Math.max(0, at - 200), at + 60)}…`);
}

async function assertSilent(portico: PorticoProcess): Promise<void> {
  const replies = await knock(portico.urls);
  for (const reply of replies) assertClean('a reply', reply.slice(reply.indexOf(': ') + 2));
  const base = `${portico.urls.management}/actuator`;
  // A heap dump holds all of memory, which is why nobody gets one unasked.
  const seen = await crawl(base, BASIC, new Set(['heapdump', 'cpuprofile', 'shutdown']));
  assert.ok(seen.length > 150, `${seen.length} replies`);
  for (const { what, text } of seen) assertClean(what, text);
  const ids = ['health', 'info', 'metrics', 'prometheus', 'env', 'configprops', 'mappings', 'loggers'];
  for (const id of [...ids, 'httpexchanges', 'eventloop', 'threaddump']) {
    assert.ok(
      seen.some(
        ({ what, status }) => what === `GET ${base}/${id} as */*` && (status === 200 || id === 'health'),
      ),
      id,
    );
  }
  await waitFor(
    'the handler to fail',
    () => portico.stdout.includes('event handler failed') || portico.stdout.includes('handler:'),
  );
  const profile = await fetch(`${base}/cpuprofile?seconds=1`, { headers: BASIC });
  assertClean('the profile', await profile.text());
  assertClean('the log', portico.stdout);
  assertClean('standard error', portico.stderr);
  assert.ok(portico.stdout.includes('******'), 'something was there to be hidden');
}

test('secrets of the environment and of the module are shown nowhere', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), MODULE);
  await using portico = startPortico({
    cwd: folder.path,
    env: {
      ...OPEN,
      ...VARIABLES,
      MANAGEMENT_USER: 'ops',
      MANAGEMENT_PASSWORD: secret('password'),
      WEBHOOK_SECRET: `${secret('webhook')},${secret('former')}`,
    },
  });
  await portico.ready();
  await assertSilent(portico);
});

test('secrets of files and of the command line are shown nowhere', async () => {
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.ts'), MODULE);
  await writeFile(join(folder.path, 'password'), `${secret('password')}\n`);
  await using portico = startPortico({
    cwd: folder.path,
    args: ['serve', '--webhook-secret', secret('webhook')],
    env: { ...OPEN, ...VARIABLES, MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD_FILE: 'password' },
  });
  await portico.ready();
  await assertSilent(portico);
});

test('the password inside the URL of the database is shown nowhere', async () => {
  await using folder = await temporaryFolder();
  await using portico = startPortico({
    cwd: folder.path,
    env: {
      ...OPEN,
      // Neither door opens the database, so that none has to be there.
      INTERFACES: 'graphql,management',
      DATABASE_URL: `postgres://me:${encodeURIComponent(secret('data base'))}@db.example/x`,
      NOTE: `it is ${secret('data base')}, or ${encodeURIComponent(secret('data base'))}`,
    },
  });
  await portico.ready();
  const seen = await crawl(
    `${portico.urls.management}/actuator`,
    {},
    new Set(['heapdump', 'cpuprofile', 'shutdown']),
  );
  for (const { what, text } of seen) assertClean(what, text);
  assert.ok(seen.some(({ text }) => text.includes('it is ******, or ******')));
  assertClean('the log', portico.stdout);
});

test('a start that fails shows no secret either', async () => {
  const failing: readonly {
    readonly env?: Record<string, string>;
    readonly module?: string;
    readonly args?: string[];
  }[] = [
    { env: { DATABASE_URL: `postgres://me:${secret('database')}@127.0.0.1:1/x` } },
    { env: { DATABASE_URL: `mysql://me:${secret('database')}@h/x` } },
    { env: { WEBHOOK_SECRET: `${secret('webhook')},` } },
    { env: { MANAGEMENT_PASSWORD: secret('password') } },
    { env: { MANAGEMENT_PASSWORD: secret('password'), MANAGEMENT_PASSWORD_FILE: 'x' } },
    { env: { MANAGEMENT_PASSWORD: `$scrypt$${secret('hash')}`, MANAGEMENT_USER: 'ops' } },
    { args: ['serve', '--management-password', secret('password')] },
    { args: ['serve', '--webhook-secret', `${secret('webhook')},`] },
    { module: `export default { webhook: { secret: ${JSON.stringify(secret('module'))}, nope: 1 } };` },
    { module: `export default { webhook: ${JSON.stringify(secret('module'))} };` },
    {
      module: `throw new Error('cannot use ' + process.env.WEBHOOK_SECRET);`,
      env: { WEBHOOK_SECRET: secret('thrown') },
    },
    {
      module: `export default { management: { users: [{ user: '', password: ${JSON.stringify(secret('user'))}, roles: [] }] } };`,
    },
    {
      module: `export default { webhook: { sources: { a: { scheme: 'nope', secrets: ${JSON.stringify(secret('literal'))} } } } };`,
    },
  ];
  for (const { env = {}, module, args = ['serve'] } of failing) {
    await using folder = await temporaryFolder();
    if (module !== undefined) await writeFile(join(folder.path, 'portico.config.ts'), module);
    await using portico = startPortico({ cwd: folder.path, args, env: { LOG_LEVEL: 'trace', ...env } });
    const code = await portico.exited();
    const what = JSON.stringify({ env, module, args });
    assert.ok(code === 1 || code === 2, `${what} ended with ${code}`);
    assert.notEqual(portico.stderr, '', what);
    assertClean(what, portico.stdout);
    assertClean(what, portico.stderr);
  }
});
