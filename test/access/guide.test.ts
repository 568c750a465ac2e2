import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';
import { runShown, settingsOf, shownCommand, shownCommands } from '../support/shown-commands.ts';
import { startIssuer } from './support/tokens.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/SECURITY.md'), 'utf8');
const SERVE = shownCommand('docs/SECURITY.md', /^REPORTS_TOKEN=.* npm start$/);
const REQUESTS = shownCommands('docs/SECURITY.md', /^curl/);
const TOKENS = shownCommands('docs/SECURITY.md', /^portico tokens/);
const SERVE_WITH_JWT = shownCommand('docs/SECURITY.md', /^API_REQUIRED=.* npm start$/);
const SERVE_PAGES = shownCommand('docs/SECURITY.md', /^REST_CORS_ORIGINS=.* npm start$/);
const SERVE_AT_A_RATE = shownCommand('docs/SECURITY.md', /^API_RATE=.* npm start$/);
const SERVE_UNLESS_LATE = shownCommand('docs/SECURITY.md', /^API_MAX_LOOP_DELAY=.* npm start$/);

async function start(env: Readonly<Record<string, string>>, module?: string): Promise<TestService> {
  const service = await startTestService({
    database: 'file',
    ...(module === undefined ? {} : { module }),
    env: { INTERFACES: 'rest,graphql', ...env },
  });
  await service.listen();
  return service;
}

const users = ({ urls }: TestService, headers: Readonly<Record<string, string>>) =>
  fetch(`${urls.rest}/users/1`, { headers });

test('every request of the guide prints what it shows, in this order', async () => {
  const [, config = ''] = /```json\n(.*?)```/s.exec(GUIDE) ?? [];
  await using service = await start(settingsOf(SERVE), `export default ${config};`);
  assert.ok(REQUESTS.length > 3);
  for (const request of REQUESTS) {
    const { stdout } = await runShown(request, { cwd: service.folder, urls: service.urls });
    assert.equal(stdout.replaceAll('\r', '').trimEnd(), request.output, request.command);
  }
});

test('what openssl makes as the guide says is good as the secret of a token', async () => {
  const [, command = ''] = /`(openssl rand [^`]*)`/.exec(GUIDE) ?? [];
  const { stdout, stderr } = await runShown({ ...SERVE, command }, { cwd: import.meta.dirname });
  const secret = stdout.trim();
  assert.equal(secret.length, 64, stderr);
  const [, config = ''] = /```json\n(.*?)```/s.exec(GUIDE) ?? [];
  await using service = await start({ ...settingsOf(SERVE), CI_TOKEN: secret }, `export default ${config};`);
  assert.equal((await users(service, { authorization: `Bearer ${secret}` })).status, 200);
});

test('a token of the database is made, listed and revoked as the guide says', async () => {
  await using service = await start({ API_REQUIRED: 'all' });
  const env = { DATABASE_URL: service.databaseUrl };
  const [create, list, revoke] = TOKENS;
  assert.ok(create && list && revoke && TOKENS.length === 3);
  const made = await runShown(create, { cwd: service.folder, env });
  const token = made.stdout.trim();
  assert.match(token, /^portico_/, made.stderr);
  assert.equal((await users(service, { authorization: `Bearer ${token}` })).status, 200);
  assert.match(
    (await runShown(list, { cwd: service.folder, env })).stdout,
    /^ci +users:read,? ?users:write /m,
  );
  const gone = await runShown(revoke, { cwd: service.folder, env });
  assert.equal(gone.code, 0, gone.stderr);
  assert.doesNotMatch((await runShown(list, { cwd: service.folder, env })).stdout, /^ci /m);
});

test('a JSON Web Token of the issuer that the guide names comes in', async () => {
  await using issuer = await startIssuer();
  const names = { 'https://id.example.com/.well-known/jwks.json': issuer.url };
  const env = settingsOf(SERVE_WITH_JWT, names);
  await using service = await start(env);
  assert.equal((await users(service, {})).status, 401);
  const { API_JWT_ISSUER: iss, API_JWT_AUDIENCE: aud } = env;
  const authorization = `Bearer ${await issuer.sign({ iss, aud })}`;
  assert.equal((await users(service, { authorization })).status, 200);
});

test('pages of the origins that the guide names may read replies, and no others', async () => {
  const env = settingsOf(SERVE_PAGES);
  await using service = await start(env);
  const allowed = async (door: string, path: string, origin: string) =>
    (await fetch(`${service.urls[door]}${path}`, { headers: { origin } })).headers.get(
      'access-control-allow-origin',
    );
  for (const [door, path, origin = ''] of [
    ['rest', '/users', env.REST_CORS_ORIGINS],
    ['graphql', '/graphql?query=%7Bhello%7D', env.GRAPHQL_CORS_ORIGINS],
  ] as const) {
    assert.equal(await allowed(door, path, origin), origin);
    assert.equal(await allowed(door, path, 'https://elsewhere.example.com'), null);
  }
});

test('replies say what is left of the rate that the guide sets', async () => {
  const env = settingsOf(SERVE_AT_A_RATE);
  const fieldsOf = ({ headers }: Response) =>
    `RateLimit: ${headers.get('ratelimit')}, RateLimit-Policy: ${headers.get('ratelimit-policy')}`;
  await using service = await start(env);
  assert.equal((await users(service, {})).headers.get('ratelimit'), '"client";r=199;t=1');
  await using plain = await start({ API_RATE: env.API_RATE ?? '' });
  const [, fields, policy] = /`(RateLimit: [^`]*)`, `(RateLimit-Policy: [^`]*)`/.exec(GUIDE) ?? [];
  assert.equal(fieldsOf(await users(plain, {})), `${fields}, ${policy}`);
});

test('a service that refuses what is late answers while nothing is', async () => {
  await using service = await start(settingsOf(SERVE_UNLESS_LATE));
  assert.equal((await users(service, {})).status, 200);
});
