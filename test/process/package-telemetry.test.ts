import assert from 'node:assert/strict';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { instrument, instrumented, SENDER, TRACE, traced } from '../support/instrumented.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { buildPackage } from '../support/package.ts';
import { startPortico } from '../support/portico-process.ts';
import { forwards, startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const API = '@opentelemetry/api';

const { built, ...cleanup } = await buildPackage();
after(() => cleanup[Symbol.asyncDispose]());

/** Installs the package below a folder; gives its command. */
async function installIn(folder: string): Promise<string> {
  const installed = join(folder, 'node_modules/portico');
  await cp(built, installed, { recursive: true });
  return join(installed, 'bin/portico.js');
}

/** The handler in a thread has a span of its own, from the SDK that the file has registered there. */
const handlers = `webhook: { handlers: {
  paid: () => {},
  isolated: { isolate: true, handler: async () => {
    const { trace } = await import('${API}');
    trace.getTracer('own').startActiveSpan('of the thread', (span) => span.end());
  } },
},`;

test('the built package sends spans and meters by OTLP with the file of the guide', async () => {
  await using otlp = await startOtlpReceiver();
  await using receiver = await startReceiver();
  await using project = await temporaryFolder();
  const main = await installIn(project.path);
  await instrument(project.path);
  const module = forwards(receiver.url, `all: to('/in', { events: ['paid'] })`);
  await writeFile(join(project.path, 'portico.config.ts'), module.replace('webhook: {', handlers));
  const env = { ...instrumented(otlp.url), OTEL_BSP_SCHEDULE_DELAY: '200' };
  await using portico = startPortico({ cwd: project.path, main, env });
  await portico.ready();
  const { rest, webhook } = portico.urls;
  const post = async (url: string, body: string) =>
    assert.equal((await fetch(url, { method: 'POST', headers: traced, body })).status, 200);
  // The first request of a connection is Fastify's, the next is the fast path's.
  for (const email of ['a@b', 'c@d']) await post(`${rest}/users`, `{"name":"A","email":"${email}"}`);
  await post(`${webhook}/webhook`, '{"event":"paid","data":{}}');
  await post(`${webhook}/webhook`, '{"event":"isolated","data":{}}');
  const expected = [
    'INSERT deliveries',
    'INSERT deliveries',
    'INSERT users',
    'INSERT users',
    'POST',
    'POST /users',
    'POST /users',
    'POST /webhook',
    'POST /webhook',
    'of the thread',
    'process isolated',
    'process paid',
  ];
  await waitFor('the spans', () => otlp.spans.length >= expected.length);
  portico.child.kill('SIGTERM');
  assert.equal(await portico.exited(), 0);
  assert.deepEqual(otlp.spans.map(({ name }) => name).toSorted(), expected);
  const inTrace = otlp.spans.filter(({ traceId }) => traceId === TRACE);
  assert.equal(inTrace.length, expected.length - 1, 'all but the one that the handler has begun');
  for (const { name, parentSpanId } of inTrace) {
    assert.equal(parentSpanId === SENDER, name.startsWith('POST /'), name);
  }
  assert.ok(otlp.metrics.has('http.server.requests.count'));
});

const copies: Readonly<Record<string, (place: string) => Promise<void>>> = {
  'has no copy of the API': async () => {},
  'has a newer copy of the API than the project': async (place) => {
    const copy = join(place, 'node_modules', API);
    await mkdir(join(copy, '..'), { recursive: true });
    await cp(join(ROOT, 'node_modules', API), copy, { recursive: true, dereference: true });
    for (const name of ['version.mjs', 'version.cjs']) {
      const file = join(copy, 'dist', name);
      await writeFile(file, (await readFile(file, 'utf8')).replace(/"1\.\d+\.\d+"/, '"1.999.0"'));
    }
  },
};
for (const [what, addCopy] of Object.entries(copies)) {
  test(`a package that is installed elsewhere and ${what} takes that of the project`, async () => {
    await using otlp = await startOtlpReceiver();
    await using elsewhere = await temporaryFolder();
    await using project = await temporaryFolder();
    const main = await installIn(elsewhere.path);
    await addCopy(elsewhere.path);
    await instrument(project.path);
    const env = { ...instrumented(otlp.url), INTERFACES: 'rest' };
    await using portico = startPortico({ cwd: project.path, main, env });
    await portico.ready();
    assert.equal((await fetch(`${portico.urls.rest}/users/1`, { headers: traced })).status, 200);
    // What is still to be sent goes when the process ends.
    portico.child.kill('SIGTERM');
    assert.equal(await portico.exited(), 0);
    assert.deepEqual(otlp.spans.map(({ name }) => name).toSorted(), ['GET /users/:id', 'SELECT users']);
    assert.ok(otlp.metrics.has('process.uptime'));
    assert.doesNotMatch(portico.stdout, /OpenTelemetry/);
  });
}
