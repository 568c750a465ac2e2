import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { engineUrls } from '../support/databases.ts';
import { instrument, instrumented, KIND, SENDER, TRACE, traced } from '../support/instrumented.ts';
import { type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startPortico } from '../support/portico-process.ts';
import { forwards, startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** A folder with the guide's file and a configuration whose event goes to a handler and a forward. */
async function prepare(at: string, otlp: string, database: string) {
  const folder = await temporaryFolder();
  await instrument(folder.path);
  const module = forwards(at, `all: to('/in', { events: ['paid'] })`).replace(
    'webhook: {',
    'webhook: { handlers: { paid: () => {} },',
  );
  await writeFile(join(folder.path, 'portico.config.ts'), module);
  const env = {
    ...instrumented(otlp),
    OTEL_BSP_SCHEDULE_DELAY: '200',
    MANAGEMENT_ENDPOINT_ACCESS: 'deliveries=unrestricted',
    MANAGEMENT_INCLUDE: 'deliveries',
    DATABASE_URL: database,
  };
  return { folder, env };
}

/** Makes all deliveries of a database three days older; nobody works on it meanwhile. */
async function age(url: string): Promise<void> {
  const statement = 'UPDATE deliveries SET received_at = received_at - 3 * 86400000';
  if (url.startsWith('sqlite:')) {
    using database = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 5_000 });
    database.exec(statement);
    return;
  }
  const client = new pg.Client(url);
  await client.connect();
  await client.query(statement);
  await client.end();
}

const post = (url: string, body: string, headers: Readonly<Record<string, string>> = traced) =>
  fetch(url, { method: 'POST', headers, body });

const SYSTEMS: Readonly<Record<string, string>> = { SQLite: 'sqlite', PostgreSQL: 'postgresql' };

describe('by OTLP', { concurrency: true }, () => {
  for (const [engine, urlOf] of Object.entries(engineUrls)) {
    test(`the guide sends spans and meters by OTLP, in one trace from the sender to the effect, on ${engine}`, async () => {
      const database = await urlOf();
      await using otlp = await startOtlpReceiver();
      await using receiver = await startReceiver();
      const { folder, env } = await prepare(receiver.url, otlp.url, database);
      await using _ = folder;
      const find = (name: string) => otlp.spans.filter((span) => span.name === name);
      let id = '';
      {
        await using portico = startPortico({ cwd: folder.path, env });
        await portico.ready();
        const { rest, webhook } = portico.urls;
        // The first request of a connection is Fastify's, the others are the fast path's.
        for (let i = 0; i < 3; i++) {
          assert.equal((await post(`${rest}/users`, '{"name":"A","email":"a@b"}')).status, 200);
          assert.equal((await fetch(`${rest}/users/1?secret=x`, { headers: traced })).status, 200);
          assert.equal((await fetch(`${rest}/users/1`)).status, 200);
        }
        const accepted = await post(`${webhook}/webhook?secret=x`, '{"event":"paid","data":{}}');
        id = accepted.headers.get('x-delivery-id') ?? '';
        await waitFor('the forward', () => receiver.at('/in').length === 1);
        await waitFor('the spans', () => find('process paid').length === 1 && find('POST').length === 1);
        // What is still to be sent goes when the process ends.
        portico.child.kill('SIGTERM');
        assert.equal(await portico.exited(), 0);
      }

      const creates = find('POST /users');
      assert.equal(creates.length, 3, 'both transports');
      for (const span of creates) {
        assert.deepEqual([span.traceId, span.parentSpanId, span.kind], [TRACE, SENDER, KIND.server]);
        assert.equal(span.service, 'shop');
        assert.equal(Number(span.attributes['http.response.status_code']), 200);
        assert.equal(span.attributes['http.route'], '/users');
        const [commit] = otlp.spans.filter(({ parentSpanId }) => parentSpanId === span.spanId);
        assert.deepEqual([commit?.name, commit?.kind], ['INSERT users', KIND.client]);
        assert.equal(commit?.attributes['db.system.name'], SYSTEMS[engine]);
      }
      const reads = find('GET /users/:id');
      assert.equal(reads.filter(({ traceId }) => traceId === TRACE).length, 3);
      assert.equal(
        new Set(reads.map(({ traceId }) => traceId)).size,
        4,
        'a trace of its own without a parent',
      );
      for (const { spanId } of reads) {
        const [read] = otlp.spans.filter(({ parentSpanId }) => parentSpanId === spanId);
        assert.deepEqual([read?.name, read?.attributes['db.system.name']], ['SELECT users', SYSTEMS[engine]]);
      }

      const [received] = find('POST /webhook') as [ReceivedSpan];
      const [stored] = find('INSERT deliveries') as [ReceivedSpan];
      assert.deepEqual([stored.traceId, stored.parentSpanId], [TRACE, received.spanId]);
      const [handled] = find('process paid') as [ReceivedSpan];
      const [sent] = find('POST') as [ReceivedSpan];
      assert.deepEqual(
        [handled.traceId, handled.parentSpanId, handled.kind],
        [TRACE, received.spanId, KIND.consumer],
      );
      assert.deepEqual([sent.traceId, sent.parentSpanId, sent.kind], [TRACE, received.spanId, KIND.client]);
      assert.equal(handled.attributes['messaging.message.id'], id);
      assert.equal(Number(sent.attributes['http.response.status_code']), 204);
      assert.equal(receiver.at('/in')[0]?.headers.traceparent, `00-${TRACE}-${sent.spanId}-01`);
      assert.doesNotMatch(JSON.stringify(otlp.spans), /secret/);

      for (const name of [
        'http.server.requests.count',
        'http.server.requests.sum',
        'webhook.deliveries',
        'process.uptime',
      ]) {
        assert.ok(otlp.metrics.has(name), name);
      }
      assert.ok(otlp.metrics.has('http.server.requests.bucket'));

      // Days later a replay begins a new trace, with a link to the first.
      await age(database);
      await using portico = startPortico({ cwd: folder.path, env });
      await portico.ready();
      const replay = `${portico.urls.management}/actuator/deliveries/${id}`;
      assert.equal(
        (await post(replay, '{"action":"replay"}', { 'content-type': 'application/json' })).status,
        204,
      );
      await waitFor('the replay', () => receiver.at('/in').length === 2);
      await waitFor('its spans', () => find('process paid').length === 2 && find('POST').length === 2);
      for (const span of [find('process paid')[1], find('POST')[1]]) {
        assert.notEqual(span?.traceId, TRACE);
        assert.equal(span?.parentSpanId, undefined);
        assert.deepEqual(
          span?.links.map(({ traceId, spanId }) => [traceId, spanId]),
          [[TRACE, received.spanId]],
        );
      }
      const { traceId, spanId } = find('POST')[1] as ReceivedSpan;
      assert.equal(receiver.at('/in')[1]?.headers.traceparent, `00-${traceId}-${spanId}-01`);
    });
  }
});

test('without an SDK nothing of OpenTelemetry is loaded', async () => {
  await using folder = await temporaryFolder();
  const hook = `
    import { registerHooks } from 'node:module';
    registerHooks({ resolve(name, context, next) {
      if (name.startsWith('@opentelemetry')) process.stderr.write('LOADED ' + name + '\\n');
      return next(name, context);
    } });`;
  await writeFile(join(folder.path, 'hook.mjs'), hook);
  const env = { NODE_OPTIONS: `--import ${pathToFileURL(join(folder.path, 'hook.mjs')).href}` };
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  assert.equal((await fetch(`${portico.urls.rest}/users`)).status, 200);
  assert.doesNotMatch(portico.stderr, /LOADED/);
});
