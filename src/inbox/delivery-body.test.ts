import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDeliveryBody } from './delivery-body.ts';

const FORM = 'application/x-www-form-urlencoded';
const parse = (text: string, contentType: string | null = FORM, source = 'github') =>
  parseDeliveryBody({ source, contentType, body: Buffer.from(text) });
const payload = (text: string) => `payload=${encodeURIComponent(text)}`;

test('the JSON in the field payload of a form', () => {
  assert.deepEqual(parse(payload('{"ref":"main","n":[1,{"é":"€+&="}]}')), {
    ref: 'main',
    n: [1, { é: '€+&=' }],
  });
  assert.deepEqual(parse(`other=1&${payload(' {"a":1}')}`), { a: 1 });
});

test('a form without JSON is its fields', () => {
  assert.deepEqual(parse('command=%2Fdeploy&text=now'), { command: '/deploy', text: 'now' });
  assert.deepEqual(parse('payload=plain&b=2'), { payload: 'plain', b: '2' });
  assert.deepEqual(parse('payload=1&payload={}'), { payload: ['1', '{}'] });
});

test('JSON is JSON, whatever its label, and a form without its label is none', () => {
  for (const text of ['{"a":1}', ' \n[{"a":1}]']) assert.deepEqual(parse(text), JSON.parse(text));
  assert.deepEqual(parse('"text"', 'application/json'), 'text');
  for (const label of [null, 'application/json', 'text/plain']) {
    assert.throws(() => parse('a=1', label), { status: 400 });
  }
});

test('/webhook itself takes no form', () => {
  assert.throws(() => parse('a=1', FORM, ''), { status: 400 });
  assert.deepEqual(parse('{"event":"e"}', FORM, ''), { event: 'e' });
});

test('the JSON of a form is as strict as any', () => {
  const deep = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`;
  for (const text of ['{', '{"a":1}}', '{"__proto__":1}', deep]) {
    assert.throws(() => parse(payload(text)), { status: 400 }, text.slice(0, 20));
  }
});
