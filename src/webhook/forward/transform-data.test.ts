import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import type { TransformData } from '../../config/schema/webhook-transform.ts';
import type { ClaimedJob } from '../../inbox/delivery.ts';
import { transformer } from './transform.ts';
import { checkTransform } from './transform-data.ts';

const body = '{"event":"paid","data":{"id":7,"name":"Zoë","tags":["a"],"none":null},"a/b":"c"}';
const delivery = newDelivery({ id: 'id-1', event: 'paid', source: 'shop', body: Buffer.from(body) });
const job: ClaimedJob = { job: 1, target: 't', attempt: 1, deaths: 0, ordered: false, delivery };
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
    /the header x-name has characters that no header may have/,
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
