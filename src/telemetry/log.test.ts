import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { captureLog } from '../../test/support/log-capture.ts';
import { anyCharacter } from '../../test/support/random.ts';
import { paintFor, plainly } from '../core/text.ts';
import { gatherWrites, limitedEntry, lineCleaner, openLog, readable } from './log.ts';

describe('log', () => {
  const open = async (level = 'info') => {
    const capture = captureLog();
    return { ...capture, log: await openLog({ level, stream: capture.stream }) };
  };
  const SECRET = 'secret-77';

  test('an entry is one line of JSON with its level by name and its time', async () => {
    const { log, entries, broken } = await open();
    const before = Date.now();
    log.warn({ port: 80 }, 'words');
    assert.deepEqual(broken, []);
    const [{ time, ...rest } = {}, ...more] = entries;
    assert.deepEqual(more, []);
    assert.deepEqual(rest, { level: 'warn', port: 80, msg: 'words' });
    const at = Date.parse(String(time));
    assert.ok(at >= before && at <= Date.now());
  });

  test('an error that cannot be marked, or read, is logged all the same', async () => {
    const { log, entries, broken } = await open();
    log.error({ err: Object.freeze(new TypeError('frozen')) }, 'failed');
    const unreadable = new Error('x');
    Object.defineProperty(unreadable, 'message', { get: () => assert.fail() });
    log.error({ err: unreadable }, 'failed');
    assert.deepEqual(broken, []);
    const [frozen, other] = entries.map(
      ({ err }) => err as { readonly message: string; readonly stack: string },
    );
    assert.equal(frozen?.message, 'TypeError: frozen');
    assert.match(frozen?.stack ?? '', /^TypeError: frozen\n {4}at /);
    assert.equal(other?.message, 'Error: something was thrown that cannot be described');
  });

  test('only what is as grave as the level is logged', async () => {
    const { log, entries } = await open('error');
    log.info('no');
    log.warn('no');
    log.error('yes');
    log.fatal('yes');
    assert.deepEqual(
      entries.map(({ level }) => level),
      ['error', 'fatal'],
    );
    const silent = await open('silent');
    silent.log.fatal('no');
    assert.deepEqual(silent.entries, []);
  });

  test('whatever a text holds, an entry stays one line and says it as it was', async () => {
    const { log, entries, broken } = await open();
    const evil = fc.constantFrom(
      '\r\n',
      '\n{"level":"fatal"}\n',
      '\u001b[31m',
      '\u2028',
      '\u2029',
      '\u0085',
      '"',
      '\\',
      '\0',
      '\u009b',
      '😀',
    );
    const text = fc.oneof(
      fc.array(fc.oneof(evil, fc.string())).map((parts) => parts.join('')),
      fc.string(),
    );
    fc.assert(
      fc.property(text, text, (value, message) => {
        log.info({ value, nested: { [value]: 1 } }, message);
        assert.deepEqual(broken, []);
        assert.equal(entries.at(-1)?.value, value);
        assert.equal(entries.at(-1)?.msg, message);
      }),
    );
  });

  test('control characters never reach a terminal raw', async () => {
    const { stream } = captureLog();
    let raw = '';
    const log = await openLog({
      level: 'info',
      stream: {
        write(line) {
          raw += line;
          stream.write(line);
        },
      },
    });
    log.info({ event: 'a\r\nb\u001b[2Jc' }, 'x\u001b]0;title\u0007');
    assert.equal(raw.split('\n').length, 2, 'one line break, at its end');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    assert.doesNotMatch(raw.slice(0, -1), /[\u0000-\u001f]/);
  });

  const headers = {
    authorization: `Bearer ${SECRET}`,
    cookie: `id=${SECRET}`,
    'x-webhook-token': SECRET,
    accept: 'text/html',
  };

  test('credentials in the headers of a request, a reply or an error are not logged, other headers are', async () => {
    const { log, entries } = await open();
    log.info({ headers }, 'headers');
    log.info({ req: { method: 'GET', headers } }, 'request');
    log.info({ res: { headers } }, 'reply');
    log.error({ err: Object.assign(new Error('failed'), { headers }) }, 'error');
    log.child({ request: { headers } }).info('child');
    assert.equal(entries.length, 5);
    assert.ok(!JSON.stringify(entries).includes(SECRET), JSON.stringify(entries));
    for (const entry of entries) assert.ok(JSON.stringify(entry).includes('text/html'));
  });

  test('credentials are hidden however their header is spelled and however deep it stands', async () => {
    const { log, entries } = await open();
    log.info({ headers: { Authorization: SECRET, Cookie: SECRET, 'X-Webhook-Token': SECRET } }, 'spelled');
    log.error({ err: Object.assign(new Error('failed'), { request: { headers } }) }, 'deep');
    assert.equal(entries.length, 2);
    assert.ok(!JSON.stringify(entries).includes(SECRET));
  });

  test('redacting changes the line, not the object that was logged', async () => {
    const { log } = await open();
    const request = { headers: { ...headers } };
    log.info({ request }, 'request');
    assert.deepEqual(request.headers, headers);
  });

  test('an error is logged with its code, its stack and its cause', async () => {
    const { log, entries } = await open();
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E_OUTER' });
    log.error({ err: error }, 'failed');
    const { err } = entries[0] as { err: { message: string; code: string; stack: string } };
    assert.equal(err.code, 'E_OUTER');
    assert.match(err.message, /outer/);
    assert.match(err.stack, /inner/);
  });

  test('all logs to standard output share one listener for the end of the process', {
    skip: process.stdout.isTTY && 'a terminal has another stream',
  }, async () => {
    await openLog({ level: 'silent' });
    const listeners = process.listenerCount('exit');
    await openLog({ level: 'silent' });
    assert.equal(process.listenerCount('exit'), listeners);
  });
});

describe('clean line', () => {
  const clean = (entry: unknown, ...secrets: string[]) =>
    JSON.parse(lineCleaner({ texts: secrets })(JSON.stringify(entry))) as unknown;

  test('credentials in headers, however spelled and however deep', () => {
    const secret = 'a "quoted" \\ secret, with: all';
    const request = {
      headers: { Authorization: secret, COOKIE: secret, 'x-webhook-token': secret, a: 'kept' },
    };
    assert.deepEqual(clean({ err: { cause: { request } }, list: [{ 'Set-Cookie': [secret, secret] }] }), {
      err: {
        cause: {
          request: {
            headers: { Authorization: '******', COOKIE: '******', 'x-webhook-token': '******', a: 'kept' },
          },
        },
      },
      list: [{ 'Set-Cookie': '******' }],
    });
    assert.deepEqual(clean({ rawHeaders: ['Host', 'h', 'Authorization', secret, 'A', 'kept'] }), {
      rawHeaders: ['Host', 'h', 'Authorization', '******', 'A', 'kept'],
    });
    assert.deepEqual(clean({ head: 'GET / HTTP/1.1\r\nAuthorization: Basic eA==\r\nHost: h\r\n' }), {
      head: 'GET / HTTP/1.1\r\nAuthorization: ******\r\nHost: h\r\n',
    });
  });

  test('known secrets wherever they stand, as JSON writes them', () => {
    for (const secret of ['canary-1', 'with "quotes"', 'back\\slash', 'tab\tand\u0001', 'grüße', '$&$1']) {
      assert.deepEqual(clean({ msg: `it was ${secret}!`, [secret]: [secret] }, secret), {
        msg: 'it was ******!',
        '******': ['******'],
      });
    }
  });

  test('a secret that looks like a number is not taken out of numbers', () => {
    assert.deepEqual(clean({ port: 1_234_567, ms: 0.123456, msg: 'is 123456' }, '123456'), {
      port: 1_234_567,
      ms: 0.123456,
      msg: 'is ******',
    });
  });

  test('whatever is logged and whatever is secret, a line stays JSON and has no secret in its texts', () => {
    const secret = fc.oneof(fc.string({ minLength: 6 }), fc.stringMatching(/^[\d.e+-]{6,9}$/));
    fc.assert(
      fc.property(fc.jsonValue(), secret, fc.string(), (value, known, around) => {
        fc.pre(!'******'.includes(known) && !known.includes('*'));
        const line = JSON.stringify({ value, msg: `${around}${known}${around}` });
        const { msg } = JSON.parse(lineCleaner({ texts: [known] })(line)) as { msg: string };
        assert.ok(!msg.includes(known));
      }),
      { numRuns: 1_000 },
    );
  });

  test('a long line does not take long', () => {
    const started = process.threadCpuUsage().user;
    for (const piece of ['cookie: ', '"cookie","', '\\"', 'authorization']) {
      lineCleaner({ texts: ['canary'] })(JSON.stringify({ msg: piece.repeat(100_000) }));
    }
    const seconds = (process.threadCpuUsage().user - started) / 1e6;
    assert.ok(seconds < 5, `${seconds} s`);
  });

  test('a secret that becomes known later is hidden from then on', () => {
    const secrets = { texts: [] as readonly string[] };
    const cleanLine = lineCleaner(secrets);
    assert.equal(cleanLine('{"msg":"canary"}'), '{"msg":"canary"}');
    secrets.texts = ['canary'];
    assert.equal(cleanLine('{"msg":"canary"}'), '{"msg":"******"}');
  });
});

describe('gather writes', () => {
  function open() {
    const written: string[] = [];
    return { written, stream: gatherWrites({ write: (text) => void written.push(text) }) };
  }

  test('what is written in one turn is passed on together, in order, at its end', async () => {
    const { written, stream } = open();
    stream.write('a\n');
    stream.write('b\n');
    assert.deepEqual(written, []);
    await nextTurn();
    assert.deepEqual(written, ['a\nb\n']);
    stream.write('c\n');
    await nextTurn();
    assert.deepEqual(written, ['a\nb\n', 'c\n']);
  });

  test('a turn that writes much does not gather it all', () => {
    const { written, stream } = open();
    for (let i = 0; i < 3; i++) stream.write('x'.repeat(70_000));
    assert.equal(written.length, 3);
  });

  test('a flush passes on at once, and only once', async () => {
    const { written, stream } = open();
    stream.write('last\n');
    stream.flushSync();
    assert.deepEqual(written, ['last\n']);
    stream.flushSync();
    await nextTurn();
    assert.deepEqual(written, ['last\n']);
  });
});

describe('limited entry', () => {
  function capture() {
    const entries: unknown[] = [];
    const info = (fields: unknown, message?: unknown) => void entries.push([fields, message]);
    return { entries, log: { info } as Parameters<typeof limitedEntry>[0] };
  }

  test('the first hundred of a second are logged as they come, the rest as their number', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { entries, log } = capture();
    using entry = limitedEntry(log, 'message');
    for (let n = 1; n <= 250; n++) entry.write({ n });
    assert.deepEqual(
      entries,
      Array.from({ length: 100 }, (_, i) => [{ n: i + 1 }, 'message']),
    );
    t.mock.timers.tick(1_000);
    assert.deepEqual(entries.slice(100), [[{ suppressed: 150 }, 'message']]);
    entry.write({ n: 251 });
    assert.deepEqual(entries.slice(101), [[{ n: 251 }, 'message']]);
    t.mock.timers.tick(1_000);
    assert.equal(entries.length, 102, 'a second with few entries says no more');
  });

  test('what was only counted is told at the end', () => {
    const { entries, log } = capture();
    const entry = limitedEntry(log, 'message');
    for (let n = 1; n <= 101; n++) entry.write({ n });
    entry[Symbol.dispose]();
    assert.deepEqual(entries.at(-1), [{ suppressed: 1 }, 'message']);
    entry[Symbol.dispose]();
    assert.equal(entries.length, 101);
  });
});

describe('terminal log', () => {
  const TIME = new Date(2026, 10, 23, 9, 8, 7, 65).toISOString();
  const lineOf = (entry: object) => `${JSON.stringify({ level: 'info', time: TIME, ...entry })}\n`;

  test('an entry is a line with its time, level, logger, message and fields', () => {
    assert.equal(readable(lineOf({ msg: 'stopped' }), plainly), '[09:08:07.065] INFO: stopped\n');
    assert.equal(
      readable(lineOf({ level: 'warn', logger: 'rest', n: 1, o: { a: [true] }, msg: 'late' }), plainly),
      '[09:08:07.065] WARN: rest: late {"n":1,"o":{"a":[true]}}\n',
    );
    const coloured = readable(lineOf({ n: 1, msg: 'm' }), paintFor({ isTTY: true }, {}));
    assert.equal(
      coloured,
      '[09:08:07.065] \x1b[32mINFO\x1b[39m: \x1b[36mm\x1b[39m \x1b[90m{"n":1}\x1b[39m\n',
    );
  });

  test('an error has its stack below the line, and what else is known of it among the fields', () => {
    const err = { type: 'Error', message: 'no', stack: 'Error: no\n    at f (x.ts:1:2)', code: 'E' };
    assert.equal(
      readable(lineOf({ level: 'error', err, n: 1, msg: 'failed' }), plainly),
      '[09:08:07.065] ERROR: failed {"n":1,"err":{"code":"E"}}\n    Error: no\n        at f (x.ts:1:2)\n',
    );
    assert.equal(
      readable(lineOf({ err: 'text', msg: 'm' }), plainly),
      '[09:08:07.065] INFO: m {"err":"text"}\n',
    );
  });

  test('whatever is in a line, nothing of it is obeyed', () => {
    const hostile = '\x1b[2J\x9b31m\u202e\r\n\u2028';
    const err = { type: hostile, message: hostile, stack: `Error: ${hostile}`, [hostile]: hostile };
    const lines = [
      lineOf({ level: hostile, logger: hostile, msg: hostile, [hostile]: hostile, err }),
      lineOf({ time: hostile, msg: 'm' }),
      `${hostile}\n`,
      `"${hostile}"\n`,
      'null\n',
    ];
    for (const line of lines) assert.doesNotMatch(readable(line, plainly), /[^\n\x20-\x7e]/);
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: anyCharacter }), fc.anything()), (entry) => {
        const text = readable(lineOf(JSON.parse(JSON.stringify(entry) ?? '{}')), plainly);
        assert.doesNotMatch(text, /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
    );
  });
});
