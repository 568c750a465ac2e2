import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import { assertAlive, refusesAll, type Writing, writings } from '../clients/doors.ts';
import { created, jsonBody, list, person, post } from '../clients/rest.ts';
import { unique } from '../clients/unique.ts';
import { assertReceived, deliver, loggedAsUnhandled } from '../clients/webhook.ts';

/** The body with one more member at its front: text that is put there as it is. */
const withMember = ({ body }: Writing, member: string) => `{${member},${body.slice(1)}`;

/** The body with these bytes at the end of its mark, inside a string. */
function withBytes({ body, mark }: Writing, bytes: readonly number[]): Uint8Array {
  const at = body.indexOf(mark) + mark.length;
  return Buffer.concat([Buffer.from(body.slice(0, at)), Buffer.from(bytes), Buffer.from(body.slice(at))]);
}

const notUtf8: readonly (readonly number[])[] = [
  [0xff],
  [0xfe, 0xff],
  [0x80],
  [0xc3],
  [0xc0, 0xaf],
  [0xe2, 0x82],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
];

/** The largest bodies, in bytes. */
const limits = {
  create: 64 * 1024,
  update: 64 * 1024,
  createUser: 100 * 1024,
  webhook: 1024 * 1024,
} as const;

const nested = (depth: number) => ({
  arrays: '['.repeat(depth) + ']'.repeat(depth),
  objects: `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
});

/** Bodies that are meant to do harm, at every door that takes one. */
export const allBodyChecks: readonly Check[] = [
  {
    id: 'ALL-01',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a body that breaks off anywhere is refused',
    needs: { logs: true },
    run: (subject) =>
      refusesAll(subject, function* ({ body }) {
        for (let length = 0; length < body.length; length += 1) yield body.slice(0, length);
      }),
  },
  {
    id: 'ALL-02',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a body with anything behind its end is refused',
    needs: { logs: true },
    run: (subject) =>
      refusesAll(subject, function* ({ body }) {
        for (const more of ['}', ']', ',', 'x', '0', '""', '{}', '\0', '//', body]) yield body + more;
      }),
  },
  {
    id: 'ALL-03',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a body nested 100,000 deep is refused, unclosed or closed',
    needs: { logs: true },
    run: (subject) =>
      refusesAll(subject, function* (writing) {
        const { arrays, objects } = nested(100_000);
        yield '['.repeat(100_000);
        yield '{"a":'.repeat(100_000);
        for (const value of [arrays, objects]) yield withMember(writing, `"x":${value}`);
      }),
  },
  {
    id: 'ALL-04',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a small body nested 1,000 deep is refused',
    needs: { logs: true },
    run: (subject) =>
      refusesAll(subject, function* (writing) {
        const { arrays, objects } = nested(1_000);
        for (const value of [arrays, objects]) yield withMember(writing, `"x":${value}`);
      }),
  },
  {
    id: 'ALL-05',
    heading: 'webhook-body',
    level: 'SHOULD',
    title: 'ordinary nesting, 20 deep, is accepted',
    needs: { logs: true },
    async run(subject) {
      const event = unique('nested');
      assertReceived(await deliver(subject, { event, data: JSON.parse(nested(20).objects) }));
      await loggedAsUnhandled(subject, event);
    },
  },
  {
    id: 'ALL-06',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a body of one byte more than the limit is refused with 413, and so is a much larger one',
    needs: { logs: true },
    run: (subject) =>
      refusesAll(
        subject,
        ({ name, body }) => [body.padEnd(limits[name] + 1), body.padEnd(5 * limits[name], 'x')],
        413,
      ),
  },
  {
    id: 'ALL-07',
    heading: 'errors',
    level: 'SHOULD',
    title: 'bytes that are no UTF-8 are refused, never replaced',
    needs: { logs: true },
    run: (subject) => refusesAll(subject, (writing) => notUtf8.map((bytes) => withBytes(writing, bytes))),
  },
  {
    id: 'ALL-08',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a key __proto__ is refused, at the top and inside, plain and escaped',
    needs: { logs: true },
    run: (subject) =>
      refusesAll(subject, function* (writing) {
        for (const key of ['"__proto__"', '"\\u005f_proto__"', '"__proto\\u005F_"']) {
          yield withMember(writing, `${key}:{"polluted":true}`);
          yield withMember(writing, `${key}:null`);
          yield withMember(writing, `"x":{"y":[{${key}:{"polluted":true}}]}`);
        }
      }),
  },
  {
    id: 'ALL-09',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'a key constructor or prototype harms nobody',
    needs: { logs: true },
    async run(subject) {
      const { name, email } = person();
      await post(subject, { name, email, constructor: { prototype: { polluted: true } }, prototype: 1 });
      const event = unique('constructor');
      await deliver(subject, { event, constructor: { prototype: { polluted: true } }, data: {} });
      assert.ok(!('polluted' in {}));
      for (const user of await list(subject))
        assert.deepEqual(Object.keys(user).sort(), ['email', 'id', 'name']);
      await assertAlive(subject);
    },
  },
  {
    id: 'ALL-10',
    heading: 'errors',
    level: 'SHOULD',
    title: 'the REST door refuses every such body in the words of the contract',
    async run(subject) {
      const { id } = await created(subject);
      const bodies = [
        '['.repeat(100_000),
        Buffer.from([0x22, 0xff, 0x22]),
        '{"__proto__":1,"name":"Ada","email":"ada@example.org"}',
        `{"name":"Ada","email":"ada@example.org","x":"${'x'.repeat(1024 * 1024)}"}`,
        `{"name":"Ada","email":"ada@example.org","x":${nested(1_000).arrays}}`,
      ];
      for (const body of bodies) {
        const create = await subject.rest.send('POST', '/users', { headers: jsonBody, body });
        assert.deepEqual(create.json(), { status: 'error', message: 'Failed to create user' });
        const update = await subject.rest.send('PUT', `/update/${id}`, { headers: jsonBody, body });
        assert.deepEqual(update.json(), { status: 'error', message: 'Failed to update user' });
      }
    },
  },
  {
    id: 'ALL-11',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a byte order mark or UTF-16 is refused or read, never stored as garbage',
    async run(subject) {
      const mark = unique('Ada');
      const text = JSON.stringify({ name: mark, email: 'ada@example.org' });
      for (const body of [Buffer.from(`\ufeff${text}`), Buffer.from(text, 'utf16le')]) {
        const reply = await subject.rest.send('POST', '/users', { headers: jsonBody, body });
        assert.ok(reply.status === 200 || (reply.status >= 400 && reply.status < 500), String(reply.status));
      }
      for (const { name } of await list(subject))
        if (name.includes('A\0')) assert.fail('stored UTF-16 as UTF-8');
      await assertAlive(subject);
    },
  },
  {
    id: 'ALL-12',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a body that is as large as the limit is accepted',
    async run(subject) {
      for (const { name, body, send } of await writings(subject, unique('large'))) {
        const reply = await send(body.padEnd(limits[name]));
        assert.equal(reply.status, 200, name);
        assert.match(reply.text, /success|received|createUser/, name);
      }
    },
  },
];
