import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseBasicAuth } from './basic-auth.ts';

const encode = (text: string | Uint8Array) => Buffer.from(text).toString('base64');

test('the header of RFC 7617 is read, in any case of the scheme', () => {
  const expected = { user: 'Aladdin', password: 'open sesame' };
  for (const scheme of ['Basic', 'basic', 'BASIC', 'bAsIc  ']) {
    assert.deepEqual(parseBasicAuth(`${scheme} QWxhZGRpbjpvcGVuIHNlc2FtZQ==`), expected);
  }
  assert.deepEqual(parseBasicAuth('Basic dGVzdDoxMjPCow=='), { user: 'test', password: '123£' });
});

test('whatever is not a proper header is nobody', () => {
  const bad = [
    undefined,
    '',
    'Basic',
    'Basic ',
    'Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==',
    'BasicQWxhZGRpbjpvcGVuIHNlc2FtZQ==',
    'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ', // no padding
    'Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==', // stray bits
    'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== x',
    'Basic QWxh ZGRpbjpvcGVu',
    'Basic YTo_Pz8=', // URL-safe alphabet
    `Basic ${encode('no colon')}`,
    `Basic ${encode(Uint8Array.of(0x61, 0x3a, 0xff))}`, // not UTF-8
    `Basic ${encode('user:with\u0000zero')}`,
    `Basic ${encode('us\ner:password')}`,
  ];
  for (const header of bad) assert.equal(parseBasicAuth(header), undefined, String(header));
});

test('every name without a colon and every password survives the header', () => {
  const printable = fc
    .string({ unit: 'grapheme' })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that cannot be sent.
    .map((text) => text.replace(/[\u0000-\u001f\u007f]/g, ''));
  fc.assert(
    fc.property(printable, printable, (name, password) => {
      const user = name.replaceAll(':', '');
      assert.deepEqual(parseBasicAuth(`Basic ${encode(`${user}:${password}`)}`), { user, password });
    }),
  );
});

test('no header makes the parser throw', () => {
  const header = fc.oneof(
    fc.string(),
    fc.uint8Array().map((bytes) => `Basic ${encode(bytes)}`),
  );
  fc.assert(fc.property(header, (text) => void parseBasicAuth(text)));
});
