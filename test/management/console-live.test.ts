import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

interface LiveEvent {
  readonly event: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the event holds.
  readonly data: any;
}

/** Reads the events of a stream one by one. */
async function* events(service: TestService, query: string, headers: Readonly<Record<string, string>> = {}) {
  const abort = new AbortController();
  const url = `${service.urls.management}/actuator/console/api/live?${query}`;
  const { body, status } = await fetch(url, { headers, signal: abort.signal });
  assert.equal(status, 200);
  let text = '';
  try {
    for await (const chunk of body ?? []) {
      text += Buffer.from(chunk).toString();
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const field = (name: string) =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
        const [event, id, data] = [field('event'), field('id'), field('data')];
        if (event && id && data) yield { event, id, data: JSON.parse(data) } satisfies LiveEvent;
      }
    }
  } finally {
    abort.abort();
  }
}

async function first(
  service: TestService,
  query: string,
  wanted: (event: LiveEvent) => boolean,
  headers = {},
) {
  for await (const event of events(service, query, headers)) if (wanted(event)) return event;
  return assert.fail('the stream ended');
}

test('a reader that connects again gets the log entries that it has missed, and no other', async () => {
  await using service = await startTestService();
  await service.listen();
  service.current.log.info('one');
  const { id, data } = await first(service, 'topics=log', ({ event }) => event === 'log');
  assert.ok(data.lines.some(({ entry }: { entry: { msg: string } }) => entry.msg === 'one'));
  service.current.log.info('two');
  const headers = { 'last-event-id': id };
  const next = await first(service, 'topics=log', ({ event }) => event === 'log', headers);
  assert.deepEqual(
    next.data.lines.map(({ entry }: { entry: { msg: string } }) => entry.msg),
    ['two'],
  );
});

test('deliveries are told when they come', async () => {
  await using service = await startTestService();
  await service.listen();
  const told = events(service, 'topics=deliveries');
  const before = (await told.next()).value;
  assert.deepEqual(before?.data, { newest: 0 });
  await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: '{"event":"other"}' });
  const after = (await told.next()).value;
  assert.ok(after?.data.newest > 0);
  await told.return(undefined);
});

test('there is a limit to how many consoles are open at once', async () => {
  await using service = await startTestService();
  await service.listen();
  const url = `${service.urls.management}/actuator/console/api/live?topics=log`;
  const abort = new AbortController();
  const open = await Promise.all(Array.from({ length: 32 }, () => fetch(url, { signal: abort.signal })));
  assert.ok(open.every(({ status }) => status === 200));
  const refused = await fetch(url);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '10']);
  await refused.text();
  abort.abort();
  await waitFor('room for another', async () => {
    const next = await fetch(url);
    await next.body?.cancel();
    return next.status === 200;
  });
});

test('streams end with the service, and wrong topics are refused', async () => {
  const service = await startTestService();
  await service.listen();
  const wrong = await fetch(`${service.urls.management}/actuator/console/api/live?topics=log,secrets`);
  assert.equal(wrong.status, 400);
  await wrong.text();
  const stream = events(service, 'topics=log');
  await stream.next();
  await service[Symbol.asyncDispose]();
  for await (const { event } of stream) assert.equal(event, 'log');
});
