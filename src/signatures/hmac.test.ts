import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { verify } from '../../test/support/signed-requests.ts';
import {
  base64Bytes,
  bodyAlone,
  hexBytes,
  hmac,
  readTemplate,
  timestampAndBody,
  timestampFault,
  UnsignableError,
} from './hmac.ts';
import type { RequestHeaders } from './schemes.ts';

describe('hmac', () => {
  const BODY = Buffer.from('{"event":"new_commit"}');
  type HmacParams = Parameters<typeof hmac>[0];
  const base: HmacParams = {
    header: 'x-signature',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: '',
    timestampHeader: undefined,
    tolerance: 300,
    template: bodyAlone.fill,
  };
  const timed: HmacParams = { ...base, timestampHeader: 'x-time', template: timestampAndBody.fill };

  const no = (reason: string) => ({ ok: false, reason });
  const check = (params: HmacParams, headers: RequestHeaders, now = 1_700_000_000_000) =>
    verify(hmac(params).verifier(['old', 'secret']), headers, BODY, now);
  const mac = (algorithm: string, text: string) => createHmac(algorithm, 'secret').update(text);

  test('every algorithm and encoding, with a prefix', () => {
    for (const algorithm of ['sha1', 'sha256', 'sha512'] as const) {
      for (const encoding of ['hex', 'base64'] as const) {
        const params = { ...base, algorithm, encoding, prefix: `${algorithm} = ` };
        const signature = `${algorithm} = ${mac(algorithm, BODY.toString()).digest(encoding)}`;
        assert.deepEqual(check(params, { 'x-signature': signature }), { ok: true });
        assert.deepEqual(hmac(params).signer(['secret', 'old'])({ id: '1', timestamp: 1, body: BODY }), {
          'x-signature': signature,
        });
        assert.deepEqual(check(params, { 'x-signature': signature.slice(9) }), no('malformed-signature'));
      }
    }
  });

  test('the published test case 2 of RFC 4231', () => {
    const signature = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
    const verifier = hmac(base).verifier(['Jefe']);
    const body = Buffer.from('what do ya want for nothing?');
    assert.deepEqual(verify(verifier, { 'x-signature': signature }, body, 0), { ok: true });
  });

  test('digits in either case, since many senders write them in upper case', () => {
    const signature = mac('sha256', BODY.toString()).digest('hex').toUpperCase();
    assert.deepEqual(check(base, { 'x-signature': signature }), { ok: true });
    assert.deepEqual(check(base, { 'x-signature': `${signature}00` }), no('malformed-signature'));
  });

  test('a signature of another algorithm has the wrong length', () => {
    for (const algorithm of ['sha1', 'sha512']) {
      const signature = mac(algorithm, BODY.toString()).digest('hex');
      assert.deepEqual(check(base, { 'x-signature': signature }), no('malformed-signature'));
    }
  });

  test('a timestamp is signed and must be near', () => {
    const signature = mac('sha256', `1700000000.${BODY}`).digest('hex');
    const headers = { 'x-signature': signature, 'x-time': '1700000000' };
    assert.deepEqual(check(timed, headers), { ok: true });
    assert.deepEqual(check(timed, headers, 1_700_000_300_999), { ok: true });
    assert.deepEqual(check(timed, headers, 1_700_000_301_000), no('too-old'));
    assert.deepEqual(check(timed, headers, 1_699_999_699_000), no('too-new'));
    assert.deepEqual(check({ ...timed, tolerance: 0 }, headers, 0), { ok: true });
    assert.deepEqual(check(timed, { 'x-signature': signature }), no('no-timestamp'));
    assert.deepEqual(check(timed, { ...headers, 'x-time': '1700000000junk' }), no('malformed-timestamp'));
    assert.deepEqual(check(timed, { ...headers, 'x-time': '1700000001' }), no('wrong-signature'));
  });

  test('a template signs other headers, as the bytes that were sent, around the body', () => {
    const template = readTemplate('{header:X-Id}:{body}:end')?.fill;
    assert.ok(template);
    const params = { ...base, template };
    const id = Buffer.from('größer').toString('latin1');
    const signature = mac('sha256', `größer:${BODY}:end`).digest('hex');
    const headers = { 'x-signature': signature, 'x-id': id };
    assert.deepEqual(check(params, headers), { ok: true });
    assert.deepEqual(check(params, { ...headers, 'x-id': 'other' }), no('wrong-signature'));
    assert.deepEqual(check(params, { 'x-signature': signature }), no('no-signed-header'));
    const sign = hmac(params).signer(['secret']);
    const request = { id: '1', timestamp: 1, body: BODY };
    assert.deepEqual(sign({ ...request, headers: { 'x-id': id } }), { 'x-signature': signature });
    assert.throws(() => sign(request), UnsignableError);
  });

  test('a missing header', () => {
    assert.deepEqual(check(base, {}), no('no-signature'));
  });
});

describe('encoding', () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 70 }).map((each) => Buffer.from(each));

  test('an encoding decodes at its own length only', () => {
    fc.assert(
      fc.property(bytes, (each) => {
        assert.deepEqual(hexBytes(each.toString('hex'), each.length), each);
        assert.deepEqual(base64Bytes(each.toString('base64'), each.length), each);
        for (const length of [each.length - 1, each.length + 1]) {
          assert.equal(hexBytes(each.toString('hex'), length), undefined);
          assert.equal(base64Bytes(each.toString('base64'), length), undefined);
        }
      }),
    );
  });

  test('a text has one spelling: whatever else is read as the same bytes is refused', () => {
    const text = fc.string({ unit: fc.constantFrom(...'Aa09+/-_=\n \u0161'), maxLength: 8 });
    fc.assert(
      fc.property(text, fc.nat(6), (each, length) => {
        const fromHex = hexBytes(each, length);
        if (fromHex !== undefined) assert.equal(fromHex.toString('hex'), each);
        const fromBase64 = base64Bytes(each, length);
        if (fromBase64 !== undefined) assert.equal(fromBase64.toString('base64'), each);
      }),
    );
  });

  test('loose spellings', () => {
    assert.deepEqual(base64Bytes('AA==', 1), Buffer.from([0]));
    for (const loose of ['AB==', 'AA', 'AA=', 'AA=\n', '-A==', 'A A=', '']) {
      assert.equal(base64Bytes(loose, 1), undefined, loose);
    }
    assert.deepEqual(hexBytes('0f', 1), Buffer.from([15]));
    for (const loose of ['0F', '0x', 'f', '0f\n', ' f', '\u0130f', '']) {
      assert.equal(hexBytes(loose, 1), undefined, loose);
    }
  });
});

describe('template', () => {
  const headers = { 'x-id': 'abc', 'x-list': ['a', 'b'] };

  test('a template is filled in around the body', () => {
    for (const [text, before, after] of [
      ['{body}', '', ''],
      ['v0:{timestamp}:{body}', 'v0:17:', ''],
      ['{header:X-Id}.{timestamp}.{body}', 'abc.17.', ''],
      ['{timestamp}{timestamp}{body}\n{header:x-id}$&', '1717', '\nabc$&'],
    ] as const) {
      assert.deepEqual(readTemplate(text)?.fill('17', headers), { before, after }, text);
    }
  });

  test('a header that is missing or not a single one leaves it unfilled', () => {
    for (const name of ['x-other', 'x-list', 'constructor', '__proto__']) {
      assert.equal(readTemplate(`{header:${name}}{body}`)?.fill('17', headers), undefined, name);
      assert.equal(readTemplate(`{body}{header:${name}}`)?.fill('17', headers), undefined, name);
    }
  });

  test('filled-in text is not parsed again', () => {
    const filled = readTemplate('{header:x-id}{body}')?.fill('17', { 'x-id': '{timestamp}{body}' });
    assert.deepEqual(filled, { before: '{timestamp}{body}', after: '' });
  });

  test('it tells whether the timestamp is signed', () => {
    assert.equal(readTemplate('{body}')?.usesTimestamp, false);
    assert.equal(readTemplate('{body}{timestamp}')?.usesTimestamp, true);
    assert.equal(readTemplate('{timestamp}{body}')?.usesTimestamp, true);
  });

  test('the two predefined templates equal their text', () => {
    assert.deepEqual(bodyAlone.fill('17', {}), readTemplate('{body}')?.fill('17', {}));
    assert.deepEqual(timestampAndBody.fill('17', {}), readTemplate('{timestamp}.{body}')?.fill('17', {}));
    assert.deepEqual([bodyAlone.usesTimestamp, timestampAndBody.usesTimestamp], [false, true]);
  });

  test('everything else is no template', () => {
    for (const text of [
      '',
      'text',
      '{timestamp}',
      '{body}{body}',
      '{Body}',
      '{ body }',
      '{body}{',
      '}{body}',
      '{{body}}',
      '{body}{id}',
      '{body}{header:}',
      '{body}{header:a b}',
      '{header:{body}}',
      'é{body}',
    ]) {
      assert.equal(readTemplate(text), undefined, text);
    }
  });
});

describe('timestamp', () => {
  const NOW = 1_700_000_000_999;

  test('the tolerance is inclusive, both ways', () => {
    for (const [timestamp, fault] of [
      ['1700000000', undefined],
      ['1699999700', undefined],
      ['1699999699', 'too-old'],
      ['1700000300', undefined],
      ['1700000301', 'too-new'],
      ['0', 'too-old'],
      ['999999999999999', 'too-new'],
    ] as const) {
      assert.equal(timestampFault(timestamp, 300, NOW), fault, timestamp);
    }
    assert.equal(timestampFault('1699999999', 1, NOW), undefined);
    assert.equal(timestampFault('1699999998', 1, NOW), 'too-old');
  });

  test('a tolerance of 0 allows every time, but still wants one', () => {
    for (const timestamp of ['0', '1', '1700000000', '999999999999999']) {
      assert.equal(timestampFault(timestamp, 0, NOW), undefined);
    }
    assert.equal(timestampFault(undefined, 0, NOW), 'no-timestamp');
    assert.equal(timestampFault('1700000000junk', 0, NOW), 'malformed-timestamp');
  });

  test('a timestamp is digits in one spelling', () => {
    assert.equal(timestampFault(undefined, 300, NOW), 'no-timestamp');
    const near = [
      '1700000000junk',
      ' 1700000000',
      '1700000000 ',
      '1700000000\n',
      '01700000000',
      '+1700000000',
    ];
    const other = ['1700000000.0', '1.7e9', '0x6553F100', '1700000000, 1700000000', '-1', 'NaN', ''];
    for (const text of [...near, ...other, '١٧٠٠٠٠٠٠٠٠', '1700000000000000']) {
      assert.equal(timestampFault(text, 300, NOW), 'malformed-timestamp', text);
    }
  });
});
