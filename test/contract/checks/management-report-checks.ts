import assert from 'node:assert/strict';
import type { Check, Reply } from '../check.ts';
import { asObject, assertReport, base, get, object, standard } from '../clients/management.ts';
import { mediaType } from '../clients/rest.ts';
import { settings } from '../modules.ts';

const canary = settings.shownValues.WEBHOOK_SECRET;

/** Every property of every source: its name and its value. */
function properties(env: Record<string, unknown>): readonly (readonly [name: string, value: unknown])[] {
  const sources = env.propertySources;
  assert.ok(Array.isArray(sources));
  return sources.flatMap((source) =>
    Object.entries(asObject(asObject(source).properties)).map(
      ([name, property]) => [name, asObject(property).value] as const,
    ),
  );
}

function isJson(reply: Reply): boolean {
  return /^application\/(json|[a-z0-9.-]+\+json)$/.test(mediaType(reply));
}

/** What info, metrics and env report, and how. */
export const managementReportChecks: readonly Check[] = [
  {
    id: 'MGMT-20',
    heading: 'management-bodies',
    level: 'MUST',
    title: 'info has a build with the strings version, artifact and name',
    async run(subject) {
      const build = asObject((await object(subject, `${base}/info`)).build);
      for (const key of ['version', 'artifact', 'name']) {
        assert.equal(typeof build[key], 'string', key);
        assert.notEqual(build[key], '', key);
      }
    },
  },
  {
    id: 'MGMT-21',
    heading: 'management-bodies',
    level: 'MUST',
    title: 'metrics has names, an array of strings',
    async run(subject) {
      const { names } = await object(subject, `${base}/metrics`);
      assert.ok(Array.isArray(names));
      for (const name of names) assert.equal(typeof name, 'string');
      assert.equal(new Set(names).size, names.length, 'no name twice');
    },
  },
  {
    id: 'MGMT-22',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'there are metrics, and their names are sorted',
    async run(subject) {
      const { names } = await object(subject, `${base}/metrics`);
      assert.ok(Array.isArray(names) && names.length > 0);
      assert.deepEqual(names, names.toSorted());
    },
  },
  {
    id: 'MGMT-23',
    heading: 'management-bodies',
    level: 'MUST',
    title: 'env has activeProfiles and propertySources of the shape {name, properties: {key: {value}}}',
    async run(subject) {
      const env = await object(subject, `${base}/env`);
      const { activeProfiles, propertySources } = env;
      assert.ok(Array.isArray(activeProfiles));
      for (const profile of activeProfiles) assert.equal(typeof profile, 'string');
      assert.ok(Array.isArray(propertySources));
      for (const source of propertySources) assert.equal(typeof asObject(source).name, 'string');
      assert.ok(properties(env).length > 0);
      for (const [name, value] of properties(env)) assert.notEqual(value, undefined, name);
    },
  },
  {
    id: 'MGMT-24',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'env shows every value as ****** by default',
    async run(subject) {
      const all = properties(await object(subject, `${base}/env`));
      assert.ok(all.length > 0);
      for (const [name, value] of all) assert.equal(value, '******', name);
    },
  },
  {
    id: 'MGMT-25',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'the profiles that are set are the active ones',
    needs: { env: settings.shownValues },
    async run(subject) {
      assert.deepEqual((await object(subject, `${base}/env`)).activeProfiles, ['production', 'blue']);
    },
  },
  {
    id: 'MGMT-26',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'without profiles activeProfiles is empty',
    async run(subject) {
      assert.deepEqual((await object(subject, `${base}/env`)).activeProfiles, []);
    },
  },
  {
    id: 'MGMT-27',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'values that are shown on demand never include secrets, nor does any other reply or the log',
    needs: { env: settings.shownValues, logs: true },
    async run(subject) {
      const reply = await get(subject, `${base}/env`);
      assert.ok(!reply.text.includes(canary));
      const shown = properties(asObject(reply.json())).map(([, value]) => value);
      assert.ok(
        shown.some((value) => value !== '******'),
        'some value is shown',
      );
      for (const endpoint of standard) {
        assert.ok(!(await get(subject, `${base}/${endpoint}`)).text.includes(canary), endpoint);
      }
      await subject.webhook.send('POST', '/webhook', { headers: { 'x-webhook-token': canary }, body: '{}' });
      assert.ok(!JSON.stringify(subject.logs()).includes(canary), 'the log');
    },
  },
  {
    id: 'MGMT-28',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'replies are JSON; Accept: application/json gets exactly that',
    async run(subject) {
      for (const endpoint of standard) {
        const silent = await get(subject, `${base}/${endpoint}`);
        assert.ok(isJson(silent), endpoint);
        assertReport(silent, endpoint);
        const plain = await get(subject, `${base}/${endpoint}`, { accept: 'application/json' });
        assert.equal(mediaType(plain), 'application/json', endpoint);
        const browser = await get(subject, `${base}/${endpoint}`, { accept: 'text/html,*/*;q=0.8' });
        assert.equal(browser.status, 200, endpoint);
        assert.ok(isJson(browser), endpoint);
      }
    },
  },
  {
    id: 'MGMT-29',
    heading: 'management-bodies',
    level: 'SHOULD',
    title: 'an Actuator client gets the media type of Actuator 3',
    async run(subject) {
      const actuator = 'application/vnd.spring-boot.actuator.v3+json';
      for (const endpoint of standard) {
        const silent = await get(subject, `${base}/${endpoint}`);
        assert.equal(mediaType(silent), actuator, endpoint);
        const asking = await get(subject, `${base}/${endpoint}`, { accept: `${actuator}, application/json` });
        assert.equal(mediaType(asking), actuator, endpoint);
      }
    },
  },
  {
    id: 'MGMT-30',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'the endpoints answer GET without a body, and HEAD like GET',
    async run(subject) {
      for (const endpoint of standard) {
        const path = `${base}/${endpoint}`;
        assertReport(await get(subject, path), endpoint);
        const head = await subject.management.send('HEAD', path);
        assert.equal(head.status, 200, endpoint);
        assert.equal(head.text, '', endpoint);
      }
    },
  },
  {
    id: 'MGMT-31',
    heading: 'interfaces',
    level: 'SHOULD',
    title: 'the endpoints are read-only: other methods are 405 with Allow',
    async run(subject) {
      for (const endpoint of standard) {
        assertReport(await get(subject, `${base}/${endpoint}`), endpoint);
        for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
          const reply = await subject.management.send(method, `${base}/${endpoint}`);
          assert.equal(reply.status, 405, `${method} ${endpoint}`);
          assert.match(String(reply.headers.allow), /\bGET\b/);
        }
      }
    },
  },
  {
    id: 'MGMT-32',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'unknown paths are 404, under the base path and beside it',
    async run(subject) {
      assertReport(await get(subject, `${base}/health`), 'health');
      for (const path of [
        '/health',
        '/users',
        '/graphql',
        `${base}/nothing`,
        `${base}x/health`,
        '/actuatorhealth',
      ]) {
        assert.equal((await get(subject, path)).status, 404, path);
      }
    },
  },
];
