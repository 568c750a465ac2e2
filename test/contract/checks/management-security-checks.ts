import assert from 'node:assert/strict';
import type { Check, Reply } from '../check.ts';
import { users } from '../clients/graphql.ts';
import { assertReport, base, basic, get, standard } from '../clients/management.ts';
import { created } from '../clients/rest.ts';
import { assertReceived, deliver } from '../clients/webhook.ts';
import { settings, usersModule } from '../modules.ts';

const password = settings.operator.MANAGEMENT_PASSWORD;
const secured = { env: settings.operator };
const securedAtRoot = { env: settings.operatorAtRoot, module: usersModule };
const right = basic('operator', password);

/** Paths under the base path, whether there is something or not. */
const covered = [
  '',
  '/',
  '/health',
  '/info',
  '/metrics',
  '/env',
  '/nothing',
  '/health/db',
  '/a/b/c',
  '/health?x=1',
];

/** Spellings that a router may take for `/actuator/health` although a guard did not. */
const disguised = [
  '/%61ctuator/health',
  '/actuator%2fhealth',
  '/actuator%2Fhealth',
  '/actuator/%68ealth',
  '/actuator/./health',
  '/actuator//health',
  '/x/../actuator/health',
  '/x/%2e%2e/actuator/health',
  '/actuator/health/',
  '/actuator;x=1/health',
  '/actuator/health;x=1',
  '/actuator/health%00',
  '/actuator/health%20',
  '/actuator/health.json',
  '/ACTUATOR/health',
  '/Actuator/Health',
  '/actuator\\health',
  '//actuator/health',
];

function assertChallenged(reply: Reply, what: string): void {
  assert.equal(reply.status, 401, what);
  assert.match(String(reply.headers['www-authenticate']), /^Basic\b/i, what);
}

/** HTTP Basic authentication (CONTRACT.md#authentication). */
export const managementSecurityChecks: readonly Check[] = [
  {
    id: 'MGMT-60',
    heading: 'authentication',
    level: 'MUST',
    title: 'not secured by default',
    async run(subject) {
      for (const name of standard) {
        assertReport(await get(subject, `${base}/${name}`), name);
        assertReport(await get(subject, `${base}/${name}`, basic('any', 'body')), name);
      }
    },
  },
  {
    id: 'MGMT-61',
    heading: 'authentication',
    level: 'MUST',
    title: 'when secured, nothing under the base path is served without credentials',
    needs: secured,
    async run(subject) {
      assertReport(await get(subject, `${base}/health`, right), 'health');
      for (const path of covered) {
        const reply = await get(subject, base + path);
        assert.ok(reply.status === 401 || reply.status === 403, `${path}: ${reply.status}`);
        assert.doesNotMatch(reply.text, /"(status|build|names|propertySources)"\s*:\s*["{[]/);
      }
    },
  },
  {
    id: 'MGMT-62',
    heading: 'errors',
    level: 'SHOULD',
    title: 'the refusal is 401 with a Basic challenge, on unknown paths and for every method too',
    needs: secured,
    async run(subject) {
      assertReport(await get(subject, `${base}/health`, right), 'health');
      for (const path of covered) assertChallenged(await get(subject, base + path), path);
      for (const method of ['HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        assertChallenged(await subject.management.send(method, `${base}/health`), method);
      }
    },
  },
  {
    id: 'MGMT-63',
    heading: 'authentication',
    level: 'MUST',
    title: 'the configured user name and password open every endpoint',
    needs: secured,
    async run(subject) {
      for (const name of standard) {
        assertReport(await get(subject, `${base}/${name}`, right), name);
      }
      assert.equal((await get(subject, `${base}/nothing`, right)).status, 404);
    },
  },
  {
    id: 'MGMT-64',
    heading: 'authentication',
    level: 'MUST',
    title: 'wrong credentials are refused like missing ones',
    needs: secured,
    async run(subject) {
      assertReport(await get(subject, `${base}/health`, right), 'health');
      const encode = (text: string) => Buffer.from(text).toString('base64');
      for (const authorization of [
        basic('operator', 'wrong').authorization,
        basic('operator', '').authorization,
        basic('operator', `${password} `).authorization,
        basic('operator', password.slice(0, -1)).authorization,
        basic('operator', password.toUpperCase()).authorization,
        basic('Operator', password).authorization,
        basic('', password).authorization,
        basic('', '').authorization,
        basic('operator:', password).authorization,
        `Basic ${encode('operator')}`,
        `Basic ${encode(password)}`,
        'Basic',
        'Basic ',
        'Basic %%%',
        `Bearer ${encode(`operator:${password}`)}`,
        encode(`operator:${password}`),
        `operator:${password}`,
      ]) {
        assertChallenged(await get(subject, `${base}/health`, { authorization }), authorization);
      }
    },
  },
  {
    id: 'MGMT-65',
    heading: 'authentication',
    level: 'MUST',
    title: 'all other paths are open',
    needs: secured,
    async run(subject) {
      for (const path of ['/livez', '/readyz', '/', '/nothing', '/actuatorx', '/health']) {
        const reply = await get(subject, path);
        assert.ok(reply.status !== 401 && reply.status !== 403, `${path}: ${reply.status}`);
        assert.equal(reply.headers['www-authenticate'], undefined, path);
      }
      assert.equal((await get(subject, '/livez')).status, 200);
      assert.equal((await get(subject, '/nothing')).status, 404);
    },
  },
  {
    id: 'MGMT-66',
    heading: 'authentication',
    level: 'MUST',
    title: 'no other spelling of a path gets past the guard',
    needs: secured,
    async run(subject) {
      assertReport(await get(subject, `${base}/health`, right), 'health');
      for (const path of disguised) {
        const reply = await get(subject, path);
        assert.ok(reply.status >= 400 && reply.status < 500, `${path}: ${reply.status}`);
        assert.doesNotMatch(reply.text, /"UP"|"DOWN"/, path);
      }
    },
  },
  {
    id: 'MGMT-67',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'right credentials without the configured role are 403',
    needs: securedAtRoot,
    async run(subject) {
      const reply = await get(subject, '/health', basic('guest', 'guest-password'));
      assert.equal(reply.status, 403);
      assert.doesNotMatch(reply.text, /"UP"/);
      assertChallenged(await get(subject, '/health', basic('guest', 'wrong')), 'wrong password');
    },
  },
  {
    id: 'MGMT-68',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'any user who has the configured role is let in',
    needs: securedAtRoot,
    async run(subject) {
      for (const headers of [basic('second', 'second-password'), right]) {
        assertChallenged(await get(subject, '/health'), 'no credentials');
        assertReport(await get(subject, '/health', headers), 'health');
      }
    },
  },
  {
    id: 'MGMT-69',
    heading: 'authentication',
    level: 'MUST',
    title: 'every path under a configured base path is covered, the former base path is open',
    needs: { env: settings.operatorElsewhere },
    async run(subject) {
      assertChallenged(await get(subject, '/manage/health'), '/manage/health');
      assertChallenged(await get(subject, '/manage/nothing'), '/manage/nothing');
      assert.equal((await get(subject, '/manage/health', right)).status, 200);
      assert.equal((await get(subject, '/actuator/health')).status, 404);
    },
  },
  {
    id: 'MGMT-70',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'with the base path / the endpoints are covered and the probes still open',
    needs: securedAtRoot,
    async run(subject) {
      for (const path of ['/health', '/env', '/nothing', '/'])
        assertChallenged(await get(subject, path), path);
      assert.equal((await get(subject, '/health', right)).status, 200);
      assert.equal((await get(subject, '/livez')).status, 200);
    },
  },
  {
    id: 'MGMT-71',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'the scheme is read in any case, and names and passwords are UTF-8',
    needs: { env: settings.beyondAscii },
    async run(subject) {
      assertChallenged(await get(subject, `${base}/health`, basic('Жанна', 'passwörd😀')), 'wrong');
      const { authorization } = basic('Жанна', 'pässwörd😀');
      for (const scheme of ['Basic', 'basic', 'BASIC']) {
        const headers = { authorization: authorization.replace('Basic', scheme) };
        assertReport(await get(subject, `${base}/health`, headers), 'health');
      }
    },
  },
  {
    id: 'MGMT-72',
    heading: 'interfaces',
    level: 'MUST',
    title: 'credentials of the management interface guard no other interface',
    needs: secured,
    async run(subject) {
      await created(subject);
      assertReceived(await deliver(subject, { event: 'new_commit', data: {} }));
      assert.ok((await users(subject)).length >= 2);
    },
  },
];
