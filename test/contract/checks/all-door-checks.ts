import assert from 'node:assert/strict';
import { rawHttp } from '../../support/connections.ts';
import type { Check, Door, Subject } from '../check.ts';
import { assertAlive, assertNoInsides } from '../clients/doors.ts';
import { changesNothing as graphUnchanged } from '../clients/graphql.ts';
import { changesNothing, jsonBody, person } from '../clients/rest.ts';
import { assertReceived } from '../clients/webhook.ts';

/** Each door with a GET that it answers below 500. */
const doors = (subject: Subject): readonly (readonly [name: string, door: Door, path: string])[] => [
  ['graphql', subject.graphql, '/graphql?query=%7Bhello%7D'],
  ['rest', subject.rest, '/users'],
  ['management', subject.management, '/actuator/health'],
  ['webhook', subject.webhook, '/webhook'],
];

/** Sends the lines and the body as they are to every door; each must refuse with one 4xx and close, or just close. */
async function refusesRaw(
  subject: Subject,
  lines: (path: string) => readonly string[],
  body = '',
): Promise<void> {
  for (const [name, door, path] of doors(subject)) {
    const text = `${lines(path).join('\r\n')}\r\n\r\n${body}`;
    const reply = await rawHttp(door.url ?? '', [text]);
    const { status, replies } = reply;
    assert.ok(status === undefined || (status >= 400 && status < 500), `${name} answers ${status}`);
    assert.ok(replies <= 1, `${name} answers ${replies} times`);
  }
  await assertAlive(subject);
}

/** What holds at every door, whatever is sent. */
export const allDoorChecks: readonly Check[] = [
  {
    id: 'ALL-20',
    heading: 'interfaces',
    level: 'MUST',
    title: 'the four interfaces are separate: none answers the paths of another',
    async run(subject) {
      await assertAlive(subject);
      for (const [name, door] of doors(subject)) {
        for (const [other, , path] of doors(subject)) {
          if (other !== name) assert.equal((await door.send('GET', path)).status, 404, `${name} ${path}`);
        }
      }
    },
  },
  {
    id: 'ALL-21',
    heading: 'limits',
    level: 'SHOULD',
    title: 'paths that are broken or very long are answered below 500, without insides',
    async run(subject) {
      const paths = [
        '/%',
        '/%zz',
        '/%ff',
        '/users/%',
        '/users/%ff',
        '/users/%e2%82',
        '/%00',
        '/webhook/%c0%af',
      ];
      paths.push(
        '/actuator/%',
        '/graphql?query=%',
        '/graphql?%ff=%zz',
        `/${'a'.repeat(8_000)}`,
        `/users/${'1'.repeat(8_000)}`,
      );
      paths.push(
        `/users?${'a=1&'.repeat(1_500)}`,
        '/users/../../etc/passwd',
        '/actuator/..%2f..%2fetc/passwd',
        '/users/a/b/c/d/e',
      );
      for (const [name, door] of doors(subject)) {
        for (const path of paths) {
          for (const method of ['GET', 'POST', 'DELETE']) {
            const reply = await door.send(method, path);
            assert.ok(reply.status < 500, `${name} ${method} ${path.slice(0, 60)}: ${reply.status}`);
            assertNoInsides(reply);
          }
        }
      }
      await assertAlive(subject);
    },
  },
  {
    id: 'ALL-22',
    heading: 'limits',
    level: 'SHOULD',
    title: 'two Host headers are refused, equal ones too',
    needs: { socket: true },
    async run(subject) {
      for (const second of ['localhost', 'elsewhere.example']) {
        for (const [name, door, path] of doors(subject)) {
          const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nHost: ${second}\r\nConnection: close\r\n\r\n`;
          assert.equal((await rawHttp(door.url ?? '', [request])).status, 400, name);
        }
      }
      await assertAlive(subject);
    },
  },
  {
    id: 'ALL-23',
    heading: 'limits',
    level: 'SHOULD',
    title: 'HTTP/1.1 without Host is refused',
    needs: { socket: true },
    run: (subject) => refusesRaw(subject, (path) => [`GET ${path} HTTP/1.1`, 'Connection: close']),
  },
  {
    id: 'ALL-24',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a body whose length is given in two ways is refused, and what follows is no second request',
    needs: { socket: true },
    async run(subject) {
      const head = (path: string) => [`POST ${path} HTTP/1.1`, 'Host: localhost'];
      const smuggled = '0\r\n\r\nGET /users HTTP/1.1\r\nHost: localhost\r\n\r\n';
      const chunked = 'Transfer-Encoding: chunked';
      await refusesRaw(subject, (path) => [...head(path), 'Content-Length: 5', chunked], smuggled);
      await refusesRaw(
        subject,
        (path) => [...head(path), 'Content-Length: 5', 'Content-Length: 6'],
        smuggled,
      );
      await refusesRaw(subject, (path) => [...head(path), 'Content-Length: +5'], smuggled);
      await refusesRaw(subject, (path) => [...head(path), 'Transfer-Encoding: xchunked'], smuggled);
    },
  },
  {
    id: 'ALL-25',
    heading: 'limits',
    level: 'SHOULD',
    title: 'what is no HTTP, and headers beyond all measure, are refused',
    needs: { socket: true },
    async run(subject) {
      await refusesRaw(subject, () => ['\u0000\u0001\u0002 garbage']);
      await refusesRaw(subject, () => ['PRI * HTTP/2.0', '', 'SM']);
      await refusesRaw(subject, (path) => [
        `GET ${path} HTTP/1.1`,
        'Host: localhost',
        `X-Big: ${'x'.repeat(70_000)}`,
      ]);
      await refusesRaw(subject, (path) => [`GET ${path} HTTP/1.1`, 'Host: localhost', 'No colon here']);
      await refusesRaw(subject, (path) => [`GET ${path} HTTP/1.1`, 'Host: localhost', 'X-Nul: a\u0000b']);
    },
  },
  {
    id: 'ALL-26',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a body that comes in pieces, a character cut in two, is read as a whole',
    needs: { socket: true },
    async run(subject) {
      const { name, email } = person();
      const body = Buffer.from(JSON.stringify({ name: `${name} 😀é漢`, email }));
      const head = `POST /users HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
      const cut = body.indexOf(0xf0) + 2;
      const whole = await rawHttp(subject.rest.url ?? '', [head, body.subarray(0, cut), body.subarray(cut)]);
      assert.match(whole.text, /User created successfully/);
      const chunks = [body.subarray(0, cut), body.subarray(cut)].map((part) =>
        Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]),
      );
      const chunkedHead =
        'POST /users HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
      const chunked = await rawHttp(subject.rest.url ?? '', [chunkedHead, ...chunks, '0\r\n\r\n']);
      assert.match(chunked.text, /User created successfully/);
      const list = await subject.rest.send('GET', '/users');
      assert.equal(list.text.split(`${name} 😀é漢`).length - 1, 2);
    },
  },
  {
    id: 'ALL-27',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a body that does not say its length is refused once it is beyond the limit',
    needs: { socket: true },
    async run(subject) {
      const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
      for (const [door, method, path, chunks] of [
        [subject.rest, 'POST', '/users', 16],
        [subject.graphql, 'POST', '/graphql', 16],
        [subject.webhook, 'POST', '/webhook', 256],
      ] as const) {
        const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
        const reply = await rawHttp(door.url ?? '', [head, ...Array.from({ length: chunks }, () => chunk)]);
        assert.ok(reply.status === undefined || reply.status === 413, `${path}: ${reply.status}`);
      }
      await assertAlive(subject);
    },
  },
  {
    id: 'ALL-28',
    heading: 'limits',
    level: 'SHOULD',
    title: 'a page of another site cannot write users in a visitor’s browser',
    async run(subject) {
      const cross = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
      await changesNothing(subject, async () => {
        const options = {
          headers: { 'content-type': 'text/plain', ...cross },
          body: JSON.stringify(person()),
        };
        const reply = await subject.rest.send('POST', '/users', options);
        assert.ok(reply.status >= 400 && reply.status < 500, String(reply.status));
      });
      await graphUnchanged(subject, async () => {
        const body = JSON.stringify({ query: 'mutation { createUser(name: "x", email: "x@x") { id } }' });
        const reply = await subject.graphql.send('POST', '/graphql', {
          headers: { ...jsonBody, ...cross },
          body,
        });
        assert.ok(reply.status >= 400 && reply.status < 500, String(reply.status));
      });
    },
  },
  {
    id: 'ALL-29',
    heading: 'authentication',
    level: 'MUST',
    title: 'an unsecured webhook accepts every request, from whatever site it says it comes',
    async run(subject) {
      for (const site of ['cross-site', 'same-origin', 'none']) {
        const headers = { ...jsonBody, 'sec-fetch-site': site, origin: 'https://sender.example' };
        assertReceived(
          await subject.webhook.send('POST', '/webhook', { headers, body: '{"event":"new_commit"}' }),
        );
      }
    },
  },
  {
    id: 'ALL-30',
    heading: 'limits',
    level: 'SHOULD',
    title: 'every reply forbids guessing its type',
    async run(subject) {
      for (const [name, door, path] of doors(subject)) {
        for (const asked of [path, '/nothing-here']) {
          const { headers } = await door.send('GET', asked);
          assert.equal(headers['x-content-type-options'], 'nosniff', `${name} ${asked}`);
        }
      }
    },
  },
  {
    id: 'ALL-31',
    heading: 'limits',
    level: 'SHOULD',
    title: 'HTTP/1.0 with a Transfer-Encoding, which it does not have, is refused',
    needs: { socket: true },
    async run(subject) {
      for (const [name, door, path] of doors(subject)) {
        const plain = `GET ${path} HTTP/1.0\r\nHost: localhost\r\n`;
        const reply = await rawHttp(door.url ?? '', [`${plain}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`]);
        assert.equal(reply.status, 400, name);
        assert.notEqual((await rawHttp(door.url ?? '', [`${plain}\r\n`])).status, 400, name);
      }
    },
  },
  {
    id: 'ALL-32',
    heading: 'authentication',
    level: 'SHOULD',
    title: 'a form on a page of another site reaches no unsecured webhook',
    async run(subject) {
      const body = '{"event":"new_commit","data":{"a":"="}}';
      const pages = [
        { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
      ];
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        for (const page of pages) {
          const headers = { 'content-type': type, ...page };
          const { status } = await subject.webhook.send('POST', '/webhook', { headers, body });
          assert.ok(status >= 400 && status < 500, `${type}: ${status}`);
        }
        const headers = { 'content-type': type };
        assertReceived(await subject.webhook.send('POST', '/webhook', { headers, body }));
      }
    },
  },
];
