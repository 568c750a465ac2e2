import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../../test/support/management-app.ts';
import { History } from '../../../observability/history/history.ts';
import { RequestTail } from '../../../observability/history/request-tail.ts';
import { LogTail } from '../../../observability/log/log-tail.ts';

async function ask(app: Awaited<ReturnType<typeof managementApp>>, path: string) {
  const { statusCode, body } = await app.inject(`/actuator/${path}`);
  return { statusCode, body: JSON.parse(body) };
}

test('the history is columnar, by window and from a moment on', async () => {
  let now = 1_000_000;
  using history = new History(
    [{ kind: 'mean', name: 'process.memory', unit: 'bytes', read: () => now }],
    () => now,
  );
  await using app = await managementApp({ history });
  for (let i = 0; i < 10; i++) {
    now += 3_000;
    history.tick();
  }
  const { body } = await ask(app, 'history');
  assert.deepEqual([body.window, body.interval, body.times.length], ['15m', 3_000, 10]);
  assert.deepEqual(body.columns['process.memory'].unit, 'bytes');
  assert.deepEqual((await ask(app, `history?after=${now - 6_000}`)).body.columns, {
    'process.memory': { unit: 'bytes', values: [now - 3_000, now] },
  });
  assert.deepEqual((await ask(app, 'history?window=3h')).body.times, [now]);
  for (const wrong of ['window=1h', 'after=x', 'window=3h&window=3h']) {
    assert.equal((await ask(app, `history?${wrong}`)).statusCode, 400, wrong);
  }
});

test('the log’s tail is given as it was written', async () => {
  const logTail = new LogTail();
  await using app = await managementApp({ logTail });
  logTail.add('{"level":"info","msg":"one"}\n');
  logTail.add('{"level":"warn","msg":"</script>"}\n');
  assert.deepEqual((await ask(app, 'logtail?after=1')).body, {
    lines: [{ number: 2, entry: { level: 'warn', msg: '</script>' } }],
  });
  assert.equal((await ask(app, 'logtail')).body.lines.length, 2);
  assert.equal((await ask(app, 'logtail?after=-1')).statusCode, 400);
});

test('requests are given by route, the latest first', async () => {
  using requests = new RequestTail();
  await using app = await managementApp({ requests });
  requests.record('rest', '/users/:id', 'GET', 200, 0.25);
  requests.record('rest', 'none', 'GET', 404, 1.5);
  const [latest, before] = (await ask(app, 'requests')).body.requests;
  assert.deepEqual([latest.route, latest.status, latest.durationMs], ['none', 404, 1.5]);
  assert.deepEqual([before.door, before.method, before.number], ['rest', 'GET', 1]);
});
