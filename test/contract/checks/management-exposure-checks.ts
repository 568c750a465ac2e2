import assert from 'node:assert/strict';
import type { Check, Subject } from '../check.ts';
import { assertReport, base, basic, get, object, standard } from '../clients/management.ts';
import { mediaType } from '../clients/rest.ts';
import { fullModule, greeting, settings, usersModule } from '../modules.ts';

const operator = basic(settings.operator.MANAGEMENT_USER, settings.operator.MANAGEMENT_PASSWORD);

/** Fails unless exactly these standard endpoints answer; the other ones are 404. */
async function exposes(
  subject: Subject,
  exposed: readonly string[],
  at = base,
  headers: Record<string, string> = {},
): Promise<void> {
  for (const name of standard) {
    const reply = await get(subject, `${at}/${name}`, headers);
    if (exposed.includes(name)) assertReport(reply, name);
    else assert.equal(reply.status, 404, `${at}/${name}`);
  }
}

/** Which endpoints there are, and under which path. */
export const managementExposureChecks: readonly Check[] = [
  {
    id: 'MGMT-40',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'without settings the four endpoints are exposed under /actuator',
    run: (subject) => exposes(subject, standard),
  },
  {
    id: 'MGMT-41',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'an include list exposes the endpoints it names and no other',
    needs: { env: { MANAGEMENT_INCLUDE: 'health,info' } },
    run: (subject) => exposes(subject, ['health', 'info']),
  },
  {
    id: 'MGMT-42',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'an include list of one endpoint exposes that one',
    needs: { env: settings.twoSecrets },
    run: (subject) => exposes(subject, ['metrics']),
  },
  {
    id: 'MGMT-43',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'the include list * exposes all endpoints, the additional ones too',
    needs: { env: settings.secret, module: fullModule },
    async run(subject) {
      await exposes(subject, standard);
      assert.equal((await get(subject, `${base}/greeting`)).text, greeting);
      assert.equal((await get(subject, `${base}/later`)).text, 'later');
    },
  },
  {
    id: 'MGMT-44',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'what is excluded is not exposed, even when it is included',
    needs: { env: { MANAGEMENT_INCLUDE: '*', MANAGEMENT_EXCLUDE: 'env,metrics' } },
    run: (subject) => exposes(subject, ['health', 'info']),
  },
  {
    id: 'MGMT-45',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'spaces around the names of a list do not matter',
    needs: { env: settings.deepPath },
    run: (subject) => exposes(subject, standard, '/internal/ops'),
  },
  {
    id: 'MGMT-46',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'the base path is configured on its own, apart from the include list',
    needs: { env: settings.operatorElsewhere },
    async run(subject) {
      await exposes(subject, ['health', 'metrics'], '/manage', operator);
      await exposes(subject, []);
    },
  },
  {
    id: 'MGMT-47',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'the base path may be /',
    needs: { env: settings.operatorAtRoot, module: usersModule },
    async run(subject) {
      await exposes(subject, standard, '', operator);
      await exposes(subject, [], base, operator);
    },
  },
  {
    id: 'MGMT-48',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'the base path may have several segments',
    needs: { env: settings.deepPath },
    async run(subject) {
      await exposes(subject, standard, '/internal/ops');
      await exposes(subject, [], '/internal');
      await exposes(subject, []);
    },
  },
  {
    id: 'MGMT-49',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'an additional endpoint is registered under its own id and returns its plain string',
    needs: { env: { MANAGEMENT_INCLUDE: 'greeting,later' }, module: fullModule },
    async run(subject) {
      const reply = await get(subject, `${base}/greeting`);
      assert.equal(reply.status, 200);
      assert.equal(reply.text, greeting);
      assert.equal((await get(subject, `${base}/later`)).text, 'later');
      await exposes(subject, []);
    },
  },
  {
    id: 'MGMT-50',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'an additional endpoint answers plain text, also when JSON is asked for',
    needs: { module: fullModule },
    async run(subject) {
      for (const accept of ['*/*', 'text/plain', 'application/json']) {
        const reply = await get(subject, `${base}/greeting`, { accept });
        assert.equal(mediaType(reply), 'text/plain', accept);
        assert.match(String(reply.headers['content-type']), /charset=utf-8/i);
        assert.equal(reply.text, greeting, accept);
      }
    },
  },
  {
    id: 'MGMT-51',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'an additional endpoint that fails is 500 and tells nothing',
    needs: { module: fullModule },
    async run(subject) {
      const reply = await get(subject, `${base}/broken`);
      assert.equal(reply.status, 500);
      assert.doesNotMatch(reply.text, /secret inside|\bat .+:\d+|portico\.config/);
      assert.equal((await get(subject, `${base}/greeting`)).status, 200);
    },
  },
  {
    id: 'MGMT-52',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'an additional endpoint that the include list does not name is 404',
    needs: { env: { MANAGEMENT_INCLUDE: standard.join(',') }, module: fullModule },
    async run(subject) {
      await exposes(subject, standard);
      for (const id of ['greeting', 'later'])
        assert.equal((await get(subject, `${base}/${id}`)).status, 404, id);
    },
  },
  {
    id: 'MGMT-54',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'an additional endpoint is exposed while nobody sets an include list',
    needs: { module: fullModule },
    async run(subject) {
      await exposes(subject, standard);
      assert.equal((await get(subject, `${base}/greeting`)).status, 200);
    },
  },
  {
    id: 'MGMT-53',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'the base path lists links to the exposed endpoints and to no other',
    needs: { env: { MANAGEMENT_INCLUDE: 'health,info' } },
    async run(subject) {
      const links = (await object(subject, base))._links as Record<
        string,
        { href: string; templated: boolean }
      >;
      assert.ok(links.self !== undefined && links.health !== undefined && links.info !== undefined);
      assert.equal(new URL(links.health.href).pathname, `${base}/health`);
      assert.equal(links.health.templated, false);
      for (const name of Object.keys(links)) assert.match(name, /^(self|health|info)/);
    },
  },
];
