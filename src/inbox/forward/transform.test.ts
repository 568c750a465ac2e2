import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import type { TransformData } from '../config.ts';
import type { ClaimedJob, DeliveryTransform, ForwardedDelivery, TransformedDelivery } from '../delivery.ts';
import { checkTransform, transformer } from './transform.ts';

describe('transform', () => {
  const MAX = 100;
  const job: ClaimedJob = {
    job: 1,
    target: 't',
    attempt: 3,
    crashes: 0,
    ordered: false,
    delivery: newDelivery({ source: 'shop' }),
  };
  const unchanged = {
    url: new URL('https://example.com/in'),
    headers: { 'content-type': 'text/x', 'user-agent': 'Portico' },
    body: job.delivery.body,
  };

  const run = (transform: DeliveryTransform, signal = new AbortController().signal) =>
    transformer(transform, MAX)(job, unchanged, signal);
  const gives = (result: unknown) => run(() => result as TransformedDelivery);

  test('it gets the delivery, its attempt and its bytes', async () => {
    let got: ForwardedDelivery | undefined;
    await run((delivery) => {
      got = delivery;
      return {};
    });
    const { id, body, receivedAt, contentType } = job.delivery;
    assert.deepEqual(got, {
      id,
      source: 'shop',
      event: 'e',
      senderEvent: 'e',
      body: { event: 'e', data: 1 },
      data: 1,
      receivedAt: new Date(receivedAt),
      attempt: 3,
      contentType,
      rawBody: body,
    });
  });

  test('what it leaves out stays as it was', async () => {
    assert.deepEqual(await gives({}), unchanged);
    assert.deepEqual(await gives(Promise.resolve({ headers: { 'X-A': '1', 'Content-Type': 'text/y' } })), {
      ...unchanged,
      headers: { 'content-type': 'text/y', 'user-agent': 'Portico', 'x-a': '1' },
    });
    const { url } = await gives({ url: 'http://other.example/x' });
    assert.equal(url.href, 'http://other.example/x');
  });

  test('texts and bytes are sent as they are, all else as JSON', async () => {
    const cases = [
      ['text', 'text', 'text/x'],
      [Buffer.from('bytes'), 'bytes', 'text/x'],
      [{ a: [1] }, '{"a":[1]}', 'application/json'],
      [null, 'null', 'application/json'],
      [0, '0', 'application/json'],
    ] as const;
    for (const [given, sent, type] of cases) {
      const { body, headers } = await gives({ body: given });
      assert.deepEqual([Buffer.from(body).toString(), headers['content-type']], [sent, type]);
    }
  });

  test('the body is bounded by the limit, or by what was received', async () => {
    assert.equal((await gives({ body: 'x'.repeat(MAX) })).body.byteLength, MAX);
    await assert.rejects(gives({ body: 'ä'.repeat(MAX / 2 + 1) }), /has 102 bytes, more than 100/);
    const delivery = newDelivery({ body: Buffer.from(`"${'x'.repeat(200)}"`) });
    const large = transformer(() => ({ body: 'y'.repeat(202) }), MAX);
    assert.equal((await large({ ...job, delivery }, unchanged, AbortSignal.any([]))).body.byteLength, 202);
  });

  test('what cannot be sent is an error that shows no value', async () => {
    const cases: readonly (readonly [unknown, RegExp])[] = [
      [undefined, /must return an object/],
      [null, /must return an object/],
      ['text', /must return an object/],
      [{ body: () => {} }, /neither text, bytes nor a JSON value/],
      [{ headers: ['a'] }, /headers must be an object/],
      [{ headers: { 'x-a': 1 } }, /the header x-a must be a text/],
      [
        { headers: { 'x-a': 'secret\r\nx-b: 1' } },
        /^Error: transform: the header x-a contains characters that are not allowed in a header$/,
      ],
      [{ headers: { 'x-a': 'x'.repeat(9_000) } }, /the headers have \d+ bytes, more than 8192/],
      [{ headers: { 'a b': '1' } }, /"a b" is not the name of a header/],
      [{ url: 'ftp://example.com' }, /url must be an http or https URL/],
      [{ url: 'https://user:secret@example.com' }, /^Error: transform: url must be .* in it$/],
      [{ url: '/path' }, /url must be/],
      [{ url: 7 }, /url must be/],
    ];
    for (const [result, message] of cases) await assert.rejects(gives(result), message);
    for (const name of ['Webhook-Id', 'webhook-signature', 'Host', 'Content-Length', 'Transfer-Encoding']) {
      await assert.rejects(gives({ headers: { [name]: '1' } }), /is a header that Portico sets itself/, name);
    }
  });

  test('it is not waited for once the signal aborts', async () => {
    const abort = new AbortController();
    const waiting = run((_delivery, { signal }) => {
      assert.equal(signal, abort.signal);
      return new Promise(() => {});
    }, abort.signal);
    abort.abort(new Error('took too long'));
    await assert.rejects(waiting, /took too long/);
    await assert.rejects(
      run(() => Promise.reject(new Error('late')), AbortSignal.abort(new Error('over'))),
      /late|over/,
    );
  });
});

describe('transform data', () => {
  const body = '{"event":"paid","data":{"id":7,"name":"Zoë","tags":["a"],"none":null},"a/b":"c"}';
  const delivery = newDelivery({ id: 'id-1', event: 'paid', source: 'shop', body: Buffer.from(body) });
  const job: ClaimedJob = { job: 1, target: 't', attempt: 1, crashes: 0, ordered: false, delivery };
  const unchanged = {
    url: new URL('https://example.com'),
    headers: { 'content-type': 'text/x' },
    body: delivery.body,
  };

  async function sent(transform: TransformData, from = job) {
    const made = await transformer(transform, 1_000)(from, unchanged, new AbortController().signal);
    return { text: Buffer.from(made.body).toString(), headers: made.headers };
  }

  test('a pointer picks the part that is sent, as JSON', async () => {
    const json = { 'content-type': 'application/json' };
    assert.deepEqual(await sent({ body: '/data/tags' }), { text: '["a"]', headers: json });
    assert.equal((await sent({ body: '/data/name' })).text, '"Zoë"');
    assert.equal((await sent({ body: '/data/none' })).text, 'null');
    assert.deepEqual(JSON.parse((await sent({ body: '' })).text), JSON.parse(body));
    await assert.rejects(sent({ body: '/data/other' }), /the body has nothing at \/data\/other/);
  });

  test('an object of pointers picks members, without those that are missing', async () => {
    const picked = await sent({
      body: { id: '/data/id', kind: '/event', gone: '/data/x', none: '/data/none' },
    });
    assert.equal(picked.text, '{"id":7,"kind":"paid","none":null}');
  });

  test('headers are templates; one that lacks a value is left out', async () => {
    const headers = {
      'X-Fixed': 'yes',
      'x-all': '{event} of {source}: {id}',
      'x-pointer': 'n{/data/id} {/a~1b} {/data/tags}',
      'x-missing': 'a {/data/x}',
      'x-null': '{/data/none}',
    };
    const made = await sent({ headers });
    assert.deepEqual(made, {
      text: body,
      headers: {
        'content-type': 'text/x',
        'x-fixed': 'yes',
        'x-all': 'paid of shop: id-1',
        'x-pointer': 'n7 c ["a"]',
      },
    });
    const unnamed = { ...job, delivery: { ...delivery, event: null } };
    assert.equal((await sent({ headers: { 'x-event': '{event}' } }, unnamed)).headers['x-event'], undefined);
    await assert.rejects(
      sent(
        { headers: { 'x-name': '{/line}' } },
        {
          ...job,
          delivery: { ...delivery, body: Buffer.from('{"line":"a\\r\\nx-evil: 1"}') },
        },
      ),
      /the header x-name contains characters that are not allowed in a header/,
    );
  });

  test('each mistake is named where it is', () => {
    const problems = (transform: unknown) => {
      const found: string[] = [];
      checkTransform({ value: { transform }, path: 'at' }, found);
      return found;
    };
    assert.deepEqual(problems({ body: '/data', headers: { 'x-a': '{id}' } }), []);
    assert.deepEqual(problems(undefined), []);
    const pointer = 'must be a JSON pointer such as /data/id';
    const template =
      'must be a text; braces only as in {id}, {event}, {senderEvent}, {source} and {/a/json/pointer}';
    assert.deepEqual(problems({ bodi: '/data' }), [
      'at.transform has an unknown key "bodi"; did you mean body?',
    ]);
    assert.deepEqual(problems({ body: 'data' }), [`at.transform.body ${pointer}`]);
    assert.deepEqual(problems({ body: { id: '/ok', name: 7 } }), [`at.transform.body.name ${pointer}`]);
    assert.deepEqual(problems({ headers: [] }), ['at.transform.headers must be an object of texts']);
    for (const text of ['{name}', '{', '}', '{}', '{{id}}', '{/a~2}', 7]) {
      assert.deepEqual(problems({ headers: { 'x-a': text } }), [`at.transform.headers.x-a ${template}`]);
    }
    assert.deepEqual(problems({ headers: { Host: 'a', 'a b': 'c' } }), [
      'at.transform.headers.Host is a header that Portico sets itself',
      'at.transform.headers["a b"] is not the name of a header',
    ]);
  });
});
