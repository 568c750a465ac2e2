import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { loadConfig } from '../../src/app/load-config.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { runCommand } from '../support/run-command.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** A receiver of forwarded deliveries, which refuses the first one. */
async function startReceiver() {
  const got: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    got.push(request.headers);
    request.resume();
    response.statusCode = got.length === 1 ? 503 : 200;
    response.end(got.length === 1 ? 'busy, hunter22' : 'thanks');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    got,
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const moduleFor = (url: string) => `
let tries = 0;
const show = ({ headers, attempt }, { log }) => {
  log.info({ headers, attempt }, 'handled');
  if (attempt === 1 && headers['x-github-event'] === 'push') throw new Error('first time');
};
export default {
  webhook: {
    sources: { github: { scheme: 'github', secrets: 'hunter22' } },
    handlers: { new_commit: show, plain: show },
    forward: { archive: { url: '${url}', allowPrivate: true, events: ['new_commit'] } },
  },
};
`;

interface Shown {
  readonly headers: Readonly<Record<string, string>>;
  readonly status: string;
  readonly jobs: readonly { readonly target: string; readonly history: readonly Record<string, unknown>[] }[];
}

async function post(service: TestService, path: string, body: string, headers: Record<string, string>) {
  const reply = await fetch(`${service.urls.webhook}${path}`, { method: 'POST', body, headers });
  assert.equal(await reply.text(), 'Webhook received');
  return reply.headers.get('x-delivery-id') ?? assert.fail();
}

/** A delivery that is over, as the API shows it. */
async function ended(service: TestService, id: string): Promise<Shown> {
  return waitFor('the delivery to be done', async () => {
    const reply = await fetch(`${service.urls.management}/actuator/deliveries/${id}`);
    const shown = (await reply.json()) as Shown;
    return shown.status === 'done' ? shown : undefined;
  });
}

const engines: Readonly<Record<string, () => Promise<string | undefined>>> = {
  sqlite: async () => undefined,
  ...(withoutPostgres === undefined ? { postgres: postgresUrl } : {}),
};

for (const [engine, urlOf] of Object.entries(engines)) {
  describe(`headers and attempts of a delivery in ${engine}`, () => {
    test('reach the handler, the forward address, the API and the command line', async () => {
      const url = await urlOf();
      await using receiver = await startReceiver();
      await using service = await startTestService({
        module: moduleFor(receiver.url),
        database: 'file',
        env: {
          MANAGEMENT_INCLUDE: 'deliveries',
          WEBHOOK_BACKOFF: '1',
          WEBHOOK_HEADERS: 'X-Request-Id',
          ...(url !== undefined && { DATABASE_URL: url }),
        },
      });
      await service.listen();
      const body = '{"ref":"main"}';
      const id = await post(service, '/webhook/github', body, {
        'x-github-event': 'push',
        'x-github-delivery': 'd-1',
        'x-hub-signature-256': await sign('hunter22', body),
        authorization: 'Bearer abc',
        'x-request-id': 'not for this source',
      });
      const kept = { 'x-github-event': 'push', 'x-github-delivery': 'd-1' };
      const shown = await ended(service, id);
      assert.deepEqual(shown.headers, kept);
      const handled = service.log.entries.filter(({ msg }) => msg === 'handled');
      assert.deepEqual(
        handled.map(({ headers, attempt }) => [headers, attempt]),
        [
          [kept, 1],
          [kept, 2],
        ],
      );
      for (const sent of receiver.got) {
        assert.deepEqual([sent['x-github-event'], sent['x-github-delivery']], ['push', 'd-1']);
        assert.equal(sent['x-hub-signature-256'] ?? sent.authorization, undefined);
      }
      const history = Object.fromEntries(
        shown.jobs.map((job) => [
          job.target,
          job.history.map((each) => [each.outcome, each.status, each.error, each.answer]),
        ]),
      );
      assert.deepEqual(history, {
        'handler:new_commit': [
          ['retry', null, 'Error: first time', null],
          ['done', null, null, null],
        ],
        'forward:archive': [
          ['retry', 503, 'AttemptError: the receiver answered 503', 'busy, ******'],
          ['done', 200, null, 'thanks'],
        ],
      });
      for (const { startedAt, durationMs, process: name } of shown.jobs.flatMap((job) => job.history)) {
        assert.ok(Date.now() - Date.parse(String(startedAt)) < 60_000);
        assert.ok(Number(durationMs) >= 0);
        assert.match(String(name), new RegExp(`:${process.pid}:[0-9a-f]{12}$`));
      }

      const env = url === undefined ? {} : { DATABASE_URL: url };
      const { stdout } = await runCommand(['deliveries', 'show', id], { cwd: service.folder, env });
      assert.match(stdout, /^Headers {3}x-github-event: push\n {10}x-github-delivery: d-1$/m);
      assert.match(
        stdout,
        /^ {4}1 {2}2\S+Z {2}.*[\d,]+ ms {2}failed .*:\d+:[0-9a-f]{12}\n {7}Error: first time$/m,
      );
      assert.match(stdout, /status 200\n {7}answer: thanks$/m);

      const plain = await post(service, '/webhook', '{"event":"plain"}', {
        'x-request-id': 'r-1',
        'x-github-event': 'ping',
      });
      assert.deepEqual((await ended(service, plain)).headers, { 'x-request-id': 'r-1' });
    });
  });
}

test('/webhook itself keeps none unless it is told to', async () => {
  await using service = await startTestService({ env: { MANAGEMENT_INCLUDE: 'deliveries' } });
  await service.listen();
  const id = await post(service, '/webhook', '{"event":"new_commit"}', { 'x-github-event': 'push' });
  assert.deepEqual((await ended(service, id)).headers, {});
});

test('a header with a secret is refused at the start', async () => {
  await using folder = await temporaryFolder();
  for (const name of ['Authorization', 'cookie', 'x-webhook-token', 'X-Hub-Signature-256']) {
    const env = { WEBHOOK_HEADERS: `x-request-id,${name}` };
    await assert.rejects(
      loadConfig({ argv: [], env, cwd: folder.path }),
      /WEBHOOK_HEADERS must be a list of header names, none of them for a secret/,
    );
  }
});
