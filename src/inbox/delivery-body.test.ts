import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isFormType, parseFormBody } from './delivery-body.ts';

describe('form body', () => {
  const parse = (text: string) => parseFormBody(Buffer.from(text));

  test('fields, escapes, plus signs, names that stand twice, and what is empty', () => {
    assert.deepEqual(parse(''), {});
    assert.deepEqual(parse('a=1&b=x+y%20%26%3D%2B&c&d=&=e&&'), {
      a: '1',
      b: 'x y &=+',
      c: '',
      d: '',
      '': 'e',
    });
    assert.deepEqual(parse('a=1&a=2&%61=3&b=1=2'), { a: ['1', '2', '3'], b: '1=2' });
    assert.deepEqual(parse('k=%E2%82%AC%F0%9F%98%80&\u00e9=\u00e9'), { k: '€😀', é: 'é' });
    assert.deepEqual(parse('constructor=1&toString=2'), { constructor: '1', toString: '2' });
  });

  test('whatever URLSearchParams writes is read as it was given', () => {
    const text = fc.string({ unit: 'grapheme' }).map((value) => value.toWellFormed());
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name }), (pairs) => {
        fc.pre(pairs.every(([name]) => name !== '__proto__'));
        assert.deepEqual({ ...parse(new URLSearchParams(pairs).toString()) }, Object.fromEntries(pairs));
      }),
    );
  });

  test('what is no form is refused with a 400, whatever the bytes are', () => {
    for (const text of [
      'a=%',
      'a=%4',
      'a=%zz',
      '%=1',
      'a=%ff',
      'a=%C3',
      'a=%ED%A0%80',
      '__proto__=1',
      '%5F_proto__=1',
    ]) {
      assert.throws(() => parse(text), { status: 400 }, text);
    }
    assert.throws(() => parseFormBody(Buffer.from([0x61, 0x3d, 0xff])), { status: 400 });
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        try {
          parseFormBody(bytes);
        } catch (error) {
          assert.equal((error as { status?: number }).status, 400);
        }
      }),
    );
  });

  test('labels of forms', () => {
    const form = 'application/x-www-form-urlencoded';
    for (const label of [form, form.toUpperCase(), `${form};charset=UTF-8`, ` ${form} ; charset=utf-8`]) {
      assert.ok(isFormType(label), label);
    }
    for (const label of [
      null,
      '',
      'application/json',
      `${form}x`,
      `text/plain, ${form}`,
      'multipart/form-data',
    ]) {
      assert.ok(!isFormType(label), String(label));
    }
  });
});
