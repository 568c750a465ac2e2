import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import Fastify from 'fastify';
import { managementApp } from '../../../test/support/management-app.ts';
import { History } from '../../telemetry/history.ts';
import { LogTail } from '../../telemetry/loggers.ts';
import { ExchangeLog, RequestTail } from '../../telemetry/request-stats.ts';
import { formatDuration, parseDuration } from './recent.ts';

describe('history', () => {
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
});

describe('httpexchanges', () => {
  async function open(secrets: readonly string[] = []) {
    const exchanges = new ExchangeLog();
    const door = Fastify();
    exchanges.listen(door);
    door.all('/*', (_request, reply) =>
      reply.header('set-cookie', 'a=canary').header('x-own', 'yes').send('text'),
    );
    const app = await managementApp({ exchanges, secrets: { texts: secrets } });
    const read = async () => (await app.inject('/actuator/httpexchanges')).json().exchanges;
    return {
      door,
      read,
      [Symbol.asyncDispose]: () => Promise.all([app.close(), door.close()]).then(() => {}),
    };
  }

  test('an exchange in the shape of Actuator', async () => {
    await using app = await open();
    assert.deepEqual(await app.read(), []);
    await app.door.inject({
      method: 'POST',
      url: '/users?page=2',
      headers: { host: 'h:1', accept: 'a, b', 'content-type': 'text/plain' },
      payload: 'x',
    });
    const [{ timestamp, timeTaken, ...exchange }, ...more] = await app.read();
    assert.deepEqual(more, []);
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000);
    assert.match(timeTaken, /^PT0\.\d{1,6}S$/);
    const { request, response } = exchange;
    assert.equal(request.uri, 'http://h:1/users?page=2');
    assert.equal(request.method, 'POST');
    assert.deepEqual(request.headers.accept, ['a, b']);
    assert.deepEqual(request.headers.host, ['h:1']);
    assert.equal(response.status, 200);
    assert.deepEqual(response.headers['x-own'], ['yes']);
    assert.deepEqual(response.headers['content-length'], ['4']);
  });

  test('no secret is shown: not in headers, nor in the URI, nor a known one anywhere', async () => {
    await using app = await open(['known-canary']);
    await app.door.inject({
      url: '/a?access_token=canary&x=known-canary&y=1',
      headers: {
        authorization: 'Basic canary',
        'proxy-authorization': 'canary',
        cookie: 'a=canary',
        'x-webhook-token': 'canary',
        'x-api-key': 'canary',
        'x-hub-signature-256': 'canary',
        referer: 'https://user:canary@h/?token=canary',
        'x-note': 'a known-canary',
      },
    });
    const exchanges = await app.read();
    assert.ok(!JSON.stringify(exchanges).includes('canary'));
    const [{ request, response }] = exchanges;
    assert.equal(request.uri, 'http://localhost:80/a?access_token=******&x=******&y=1');
    assert.deepEqual(Object.keys(request.headers).sort(), ['host', 'referer', 'user-agent', 'x-note']);
    assert.equal(response.headers['set-cookie'], undefined);
  });

  test('what a client makes long is cut', async () => {
    await using app = await open();
    await app.door.inject({ url: `/${'x'.repeat(5_000)}`, headers: { 'x-long': 'y'.repeat(5_000) } });
    const [{ request }] = await app.read();
    assert.equal(request.uri.length, 2_000);
    assert.equal(request.headers['x-long'][0].length, 2_000);
  });
});

describe('iso duration', () => {
  test('durations are written as Java writes them', () => {
    for (const [milliseconds, text] of [
      [0, 'PT0S'],
      [23, 'PT0.023S'],
      [1_000, 'PT1S'],
      [10_000, 'PT10S'],
      [65_500, 'PT1M5.5S'],
      [60_000, 'PT1M'],
      [3_723_004, 'PT1H2M3.004S'],
      [360_000_000, 'PT100H'],
      [59_999.9999, 'PT1M'],
      [0.4236, 'PT0.000424S'],
      [0.0001, 'PT0S'],
    ] as const) {
      assert.equal(formatDuration(milliseconds), text);
    }
  });

  test('durations are read', () => {
    for (const [text, milliseconds] of [
      ['PT10M', 600_000],
      ['P1D', 86_400_000],
      ['P1DT1H1M1.5S', 90_061_500],
      ['pt5s', 5_000],
      ['PT0S', 0],
    ] as const) {
      assert.equal(parseDuration(text), milliseconds);
    }
  });

  test('what is no duration is not read', () => {
    for (const text of [
      '',
      'P',
      'PT',
      '10M',
      'PT10',
      'P10M',
      'P1Y',
      'PT-5S',
      'PT1.5M',
      'PT5S1H',
      ' PT5S',
      'PT5S\n',
    ]) {
      assert.equal(parseDuration(text), undefined, text);
    }
  });

  test('what is written is read back', () => {
    fc.assert(
      fc.property(fc.nat(1e9), (milliseconds) => {
        assert.equal(parseDuration(formatDuration(milliseconds)), milliseconds);
      }),
    );
  });
});
