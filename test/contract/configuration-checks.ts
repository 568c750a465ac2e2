import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../src/app/load-config.ts';
import type { Settings } from '../../src/config/options/options.ts';
import { freePort } from '../support/free-port.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import type { Check } from './check.ts';
import { socketDoor } from './doors.ts';

/** A row about settings, for which there is no running service to talk to before it begins. */
export interface ConfigurationCheck extends Pick<Check, 'id' | 'heading' | 'level' | 'title'> {
  run(): Promise<void>;
}

interface Given {
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly module?: string;
}

/** The settings in a folder that holds nothing but the module, if one is given. */
async function settings({ argv = [], env = {}, module }: Given = {}): Promise<Settings> {
  await using folder = await temporaryFolder();
  if (module !== undefined) await writeFile(join(folder.path, 'portico.config.ts'), module);
  return (await loadConfig({ argv, env, cwd: folder.path })).settings;
}

/** The words of the error that such settings end in. */
async function refusal(given: Given): Promise<string> {
  const error: unknown = await settings(given).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Error, 'these settings are refused');
  return error.message;
}

async function status(url: string, method: string, path: string, headers = {}, body = ''): Promise<number> {
  return (await socketDoor(() => url).send(method, path, { headers, ...(body && { body }) })).status;
}

export const configurationChecks: readonly ConfigurationCheck[] = [
  {
    id: 'CFG-01',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'the GraphQL user API is at port 4000 and path /graphql by default',
    async run() {
      const { 'graphql.port': port, 'graphql.path': path } = await settings();
      assert.deepEqual({ port, path }, { port: 4000, path: '/graphql' });
    },
  },
  {
    id: 'CFG-02',
    heading: 'management-endpoints',
    level: 'MUST',
    title: 'the management endpoints are at port 8080 and base path /actuator by default',
    async run() {
      const { 'management.port': port, 'management.basePath': path } = await settings();
      assert.deepEqual({ port, path }, { port: 8080, path: '/actuator' });
    },
  },
  {
    id: 'CFG-03',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'the webhook receiver is at port 3000 by default, and at PORT when that is set',
    async run() {
      assert.equal((await settings())['webhook.port'], 3000);
      assert.equal((await settings({ env: { PORT: '3456' } }))['webhook.port'], 3456);
      const others = await settings({ env: { PORT: '3456' } });
      assert.deepEqual(
        [others['graphql.port'], others['rest.port'], others['management.port']],
        [4000, 8000, 8080],
        'PORT is the webhook receiver’s alone',
      );
    },
  },
  {
    id: 'CFG-04',
    heading: 'webhook-receipt',
    level: 'MUST',
    title: 'the webhook receiver listens at the port that PORT names',
    async run() {
      const port = await freePort();
      await using service = await startTestService({ env: { PORT: String(port) } });
      await service.listen();
      const url = `http://127.0.0.1:${port}`;
      const reply = await socketDoor(() => url).send('POST', '/webhook', { body: '{"event":"new_commit"}' });
      assert.equal(reply.text, 'Webhook received');
    },
  },
  {
    id: 'CFG-05',
    heading: 'authentication',
    level: 'MUST',
    title: 'without settings neither the management endpoints nor the webhook receiver are secured',
    async run() {
      const all = await settings();
      assert.equal(all['management.user'], undefined);
      assert.equal(all['management.password'], undefined);
      assert.equal(all['webhook.secret'], undefined);
    },
  },
  {
    id: 'CFG-06',
    heading: 'management-endpoints',
    level: 'SHOULD',
    title: 'the other defaults are those of the design',
    async run() {
      const all = await settings();
      assert.equal(all.host, '127.0.0.1');
      assert.equal(all['rest.port'], 8000);
      assert.equal(all['database.url'], 'sqlite:portico.db');
      assert.equal(all['graphql.users'], 'memory');
      assert.equal(all['management.showValues'], 'never');
      assert.equal(all['log.level'], 'info');
      assert.deepEqual(all.interfaces, ['graphql', 'rest', 'management', 'webhook']);
      assert.deepEqual(all['management.include'], ['health', 'info', 'metrics', 'env']);
      assert.deepEqual(all['management.exclude'], []);
      assert.deepEqual(all.profiles, []);
    },
  },
  {
    id: 'CFG-07',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'a flag wins over the environment, that over the module, that over the default',
    async run() {
      const module =
        'export default { webhook: { port: 3001 }, rest: { port: 8001 }, graphql: { port: 4001 } };';
      const env = { PORT: '3002', REST_PORT: '8002' };
      const all = await settings({ argv: ['--webhook-port', '3003'], env, module });
      const ports = [all['webhook.port'], all['rest.port'], all['graphql.port'], all['management.port']];
      assert.deepEqual(ports, [3003, 8002, 4001, 8080]);
    },
  },
  {
    id: 'CFG-08',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'unknown flags, unknown keys and values that do not parse are refused, all in one message',
    async run() {
      const message = await refusal({
        argv: ['--no-such-flag', 'x'],
        env: { PORT: 'three thousand', REST_PORT: '70000', LOG_LEVEL: 'loud', GRAPHQL_PATH: 'no-slash' },
        module: 'export default { rest: { prot: 8001 }, nothing: 1 };',
      });
      for (const word of [
        '--no-such-flag',
        'PORT',
        'REST_PORT',
        'LOG_LEVEL',
        'GRAPHQL_PATH',
        'prot',
        'nothing',
      ]) {
        assert.ok(message.includes(word), `${word} in ${message}`);
      }
    },
  },
  {
    id: 'CFG-09',
    heading: 'webhook-receipt',
    level: 'SHOULD',
    title: 'ports are whole numbers from 0 to 65535, written plainly',
    async run() {
      for (const port of ['-1', '65536', '1.5', '0x10', '1e3', 'abc', '3000 3001', '3000;', 'NaN']) {
        assert.match(await refusal({ env: { PORT: port } }), /\bPORT\b/, port);
      }
      for (const port of ['0', '1', '65535']) {
        assert.equal((await settings({ env: { PORT: port } }))['webhook.port'], Number(port));
      }
    },
  },
  {
    id: 'CFG-10',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'a shared secret that cannot be meant stops the start: the receiver is never open by mistake',
    async run() {
      for (const secret of [',', 'a,,b', ' ']) await refusal({ env: { WEBHOOK_SECRET: secret } });
      await refusal({ env: { WEBHOOK_SECRET_FILE: '/nowhere/at/all' } });
      await refusal({ env: { MANAGEMENT_USER: 'operator' } });
      await refusal({ env: { MANAGEMENT_PASSWORD: 'password' } });
    },
  },
  {
    id: 'CFG-11',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'secrets come from files too, without the line end',
    async run() {
      await using folder = await temporaryFolder();
      const [secret, password] = [join(folder.path, 'secret'), join(folder.path, 'password')];
      await writeFile(secret, 'the-filed-secret\n');
      await writeFile(password, 'the-filed-password\r\n');
      const env = {
        WEBHOOK_SECRET_FILE: secret,
        MANAGEMENT_USER: 'operator',
        MANAGEMENT_PASSWORD_FILE: password,
      };
      await using service = await startTestService({ env });
      await service.listen();
      const { webhook = '', management = '' } = service.urls;
      assert.equal(await status(webhook, 'POST', '/webhook', {}, '{}'), 401);
      assert.equal(
        await status(webhook, 'POST', '/webhook', { 'x-webhook-token': 'the-filed-secret' }, '{}'),
        200,
      );
      const authorization = `Basic ${Buffer.from('operator:the-filed-password').toString('base64')}`;
      assert.equal(await status(management, 'GET', '/actuator/health'), 401);
      assert.equal(await status(management, 'GET', '/actuator/health', { authorization }), 200);
    },
  },
  {
    id: 'CFG-12',
    heading: 'interfaces',
    level: 'SHOULD',
    title: 'only the interfaces that are asked for are opened',
    async run() {
      await using service = await startTestService({ env: { INTERFACES: 'rest,management' } });
      await service.listen();
      assert.deepEqual(Object.keys(service.urls).sort(), ['management', 'rest']);
      assert.equal(await status(service.urls.rest ?? '', 'GET', '/users'), 200);
    },
  },
  {
    id: 'CFG-13',
    heading: 'interfaces',
    level: 'SHOULD',
    title: 'every door listens at the loopback address only, and at none once the service has stopped',
    async run() {
      const service = await startTestService();
      await service.listen();
      const urls = Object.values(service.urls);
      assert.equal(urls.length, 4);
      for (const url of urls) {
        assert.equal(new URL(url).hostname, '127.0.0.1');
        await assert.rejects(status(url.replace('127.0.0.1', '127.0.0.2'), 'GET', '/'), {
          code: 'ECONNREFUSED',
        });
      }
      await service[Symbol.asyncDispose]();
      for (const url of urls) {
        await waitFor('the door to be closed', () =>
          status(url, 'GET', '/').then(
            () => false,
            (error: { code?: string }) => error.code === 'ECONNREFUSED',
          ),
        );
      }
    },
  },
  {
    id: 'CFG-14',
    heading: 'interfaces',
    level: 'SHOULD',
    title: 'when one port is taken the start fails and names it, and no door stays open',
    async run() {
      const taken = createServer();
      await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done));
      const { port } = taken.address() as AddressInfo;
      const rest = await freePort();
      try {
        await using service = await startTestService({
          env: { PORT: String(port), REST_PORT: String(rest) },
        });
        await assert.rejects(service.listen(), (error: Error) => error.message.includes(String(port)));
        await assert.rejects(status(`http://127.0.0.1:${rest}`, 'GET', '/users'), { code: 'ECONNREFUSED' });
      } finally {
        await new Promise((done) => taken.close(done));
      }
    },
  },
];
