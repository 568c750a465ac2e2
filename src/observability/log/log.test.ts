import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { captureLog } from '../../../test/support/log-capture.ts';
import { openLog } from './log.ts';

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
