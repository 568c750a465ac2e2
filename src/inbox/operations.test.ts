import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type DeliveryDetail, detailJson, readCount, readFilter } from './operations.ts';

type DetailView = Parameters<typeof detailJson>[1];

describe('delivery query', () => {
  const NOW = Date.UTC(2026, 0, 31, 12);

  function texts(given: Readonly<Record<string, string>>) {
    const problems: string[] = [];
    return { text: (field: string) => given[field], name: (field: string) => `--${field}`, problems };
  }

  test('a filter has only the given fields', () => {
    assert.deepEqual(readFilter(texts({}), NOW), {});
    const all = { status: 'dead', event: 'e', source: '', since: '2h', until: '2026-01-31T11:00Z' };
    assert.deepEqual(readFilter(texts(all), NOW), {
      status: 'dead',
      event: 'e',
      source: '',
      since: NOW - 7_200_000,
      until: NOW - 3_600_000,
    });
  });

  test('all problems are reported, with a suggestion', () => {
    const query = texts({ status: 'deat', since: 'now', until: '\u001b[31m' });
    readFilter(query, NOW);
    assert.deepEqual(query.problems, [
      '--status must be one of unhandled, processing, pending, dead, done, discarded; did you mean dead?',
      '--since must be an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d, not "now"',
      '--until must be an ISO 8601 time like 2026-01-31T14:00Z, or how long ago like 15m, 2h or 3d, not "\\u001b[31m"',
    ]);
  });

  test('a count is a whole number in its range', () => {
    assert.equal(readCount(texts({}), 'limit', 20), 20);
    assert.equal(readCount(texts({ limit: '7' }), 'limit', 20, 10), 7);
    for (const limit of ['', '0', '-1', '1.5', '1e3', '011', '11', '9'.repeat(20), ' 1']) {
      const query = texts({ limit });
      assert.equal(readCount(query, 'limit', 20, 10), 20, limit);
      assert.match(query.problems.join(), /^--limit must be a whole number from 1 to 10, not /);
    }
  });
});

describe('delivery json', () => {
  const view: DetailView = {
    shown: true,
    maxBodyBytes: 100,
    mask: (text) => text.replaceAll('secret', '***'),
  };

  const none = { duration: null, answer: null, error: null };

  function detail(body: string | Uint8Array, changes: Partial<DeliveryDetail> = {}): DeliveryDetail {
    const bytes = Buffer.from(body);
    return {
      seq: 7,
      id: 'id',
      source: '',
      event: 'e',
      senderEvent: null,
      status: 'pending',
      error: null,
      receivedAt: 1_700_000_000_000,
      attempts: 2,
      size: bytes.length,
      plannedAt: null,
      dataPointer: '/data',
      contentType: null,
      headers: '{"x-event":"secret e"}',
      body: bytes,
      jobs: [
        {
          target: 't',
          status: 'pending',
          attempts: 2,
          dueAt: 1_700_000_001_000,
          plannedAt: 1_700_000_001_000,
          error: 'E: no secret',
          finishedAt: null,
          history: [
            {
              attempt: 1,
              outcome: 'retry',
              startedAt: 1_700_000_000_100,
              duration: 12,
              process: 'host:7:ab',
              answer: { status: 503, body: 'a secret' },
              error: 'E: no secret',
            },
            { ...none, attempt: 2, outcome: 'crashed', startedAt: 1_700_000_000_200, process: 'host:8:cd' },
          ],
          crashes: 3,
        },
        {
          target: 'u',
          status: 'done',
          attempts: 1,
          dueAt: 1,
          plannedAt: null,
          error: null,
          finishedAt: 1_700_000_000_500,
          history: [],
          crashes: 0,
        },
      ],
      ...changes,
    };
  }

  test('a delivery with all there is to know', () => {
    assert.deepEqual(JSON.parse(detailJson(detail('{"event":"e"}'), view)), {
      seq: 7,
      id: 'id',
      source: '',
      event: 'e',
      senderEvent: 'e',
      status: 'pending',
      receivedAt: '2023-11-14T22:13:20.000Z',
      plannedAt: null,
      attempts: 2,
      size: 13,
      contentType: null,
      dataPointer: '/data',
      headers: { 'x-event': '*** e' },
      jobs: [
        {
          target: 't',
          status: 'pending',
          attempts: 2,
          crashes: 3,
          nextAttemptAt: '2023-11-14T22:13:21.000Z',
          plannedAt: '2023-11-14T22:13:21.000Z',
          finishedAt: null,
          error: 'E: no ***',
          history: [
            {
              attempt: 1,
              outcome: 'retry',
              startedAt: '2023-11-14T22:13:20.100Z',
              durationMs: 12,
              process: 'host:7:ab',
              status: 503,
              error: 'E: no ***',
              answer: 'a ***',
            },
            {
              attempt: 2,
              outcome: 'crashed',
              startedAt: '2023-11-14T22:13:20.200Z',
              durationMs: null,
              process: 'host:8:cd',
              status: null,
              error: null,
              answer: null,
            },
          ],
        },
        {
          target: 'u',
          status: 'done',
          attempts: 1,
          crashes: 0,
          nextAttemptAt: null,
          plannedAt: null,
          finishedAt: '2023-11-14T22:13:20.500Z',
          error: null,
          history: [],
        },
      ],
      body: { event: 'e' },
    });
  });

  test('a body keeps its digits, its repeated names and its line breaks do no harm', () => {
    const text = '{"n":12345678901234567890,\r\n "n":1.10,"s":"a\\nb"}';
    const json = detailJson(detail(text), view);
    assert.ok(json.endsWith(',"body":{"n":12345678901234567890,   "n":1.10,"s":"a\\nb"}}'), json);
    assert.ok(!json.includes('\n'));
    assert.deepEqual(JSON.parse(detailJson(detail('\ufeff[1]'), view)).body, [1]);
  });

  test('a body that is too long, or no JSON, is base64', () => {
    const long = JSON.stringify('x'.repeat(200));
    const read = JSON.parse(detailJson(detail(long), view));
    assert.equal('body' in read, false);
    assert.equal(Buffer.from(read.bodyBase64, 'base64').toString(), long.slice(0, 100));
    assert.equal(read.bodyTruncated, true);
    for (const body of ['{"a":', Uint8Array.of(0x22, 0xff, 0x22)]) {
      const { bodyBase64, bodyTruncated } = JSON.parse(detailJson(detail(body), view));
      assert.deepEqual(Buffer.from(bodyBase64, 'base64'), Buffer.from(body));
      assert.equal(bodyTruncated, false);
    }
  });

  test('where details are not shown there is no body and no error', () => {
    const json = detailJson(detail('{"event":"canary"}'), { ...view, shown: false });
    assert.doesNotMatch(json, /canary|secret|E: no|body|x-event|a \*\*\*/);
    assert.equal(JSON.parse(json).jobs[0].attempts, 2);
  });
});
