import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Door } from '../../src/config/door.ts';
import { type LaneTwins, startLaneTwins } from '../support/lane-twins.ts';
import {
  almostPlain,
  type OddRequest,
  type OddRequests,
  oddRequest,
  pieces,
} from '../support/odd-requests.ts';
import { waitFor } from '../support/wait-for.ts';

const RUNS = 300;
const JSON_LABEL = 'Content-Type: application/json';

const env = {
  MANAGEMENT_INCLUDE: 'prometheus',
  GRAPHQL_MAX_USERS: '5',
  GRAPHQL_MAX_BODY_BYTES: '400',
  WEBHOOK_MAX_BODY_BYTES: '300',
  WEBHOOK_MAX_BYTES_IN_FLIGHT: '400',
  WEBHOOK_SECRET: 'sesame',
};

/** Bodies that no door takes for JSON, or for good JSON. */
const brokenBodies = [
  '',
  ' ',
  '\ufeff{"query":"{hello}"}',
  Uint8Array.of(0x7b, 0xff, 0x7d),
  '{"__proto__":{"event":"x"}}',
  '{"\\u005f_proto__":1,"query":"{hello}"}',
  `{"query":"{hello}","variables":{"a":${'['.repeat(63)}${']'.repeat(63)}}}`,
  `{"query":"{hello}","variables":{"a":${'['.repeat(62)}${']'.repeat(62)}}}`,
  '{"query":',
  'null',
  '7',
  '"text"',
  '[]',
  'query={hello}',
];

const rest: OddRequests = {
  methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'get'],
  targets: [
    '/users/1',
    ...[
      '2',
      '3',
      '0',
      '01',
      '+1',
      '-1',
      '1.0',
      '1e0',
      '%31',
      '1%2F',
      'abc',
      '9007199254740993',
      '',
      '1/',
      '1/2',
    ].map((id) => `/users/${id}`),
    ...[
      '/users',
      '/users/1?x=1',
      '/users/1?',
      '/users/1;a=1',
      '/Users/1',
      '//users/1',
      '/users//1',
      '/',
      '*',
    ],
    ...[
      'http://h/users/1',
      'HTTP://h/users/1',
      '/users/1?a=/',
      '/users/?/1',
      '/./users/1',
      '/update/9',
      '/delete/9',
    ],
  ],
  headers: ['Accept: text/html', 'X-HTTP-Method-Override: DELETE', JSON_LABEL],
  usual: [],
  bodies: ['', ...brokenBodies],
};

const graphql: OddRequests = {
  methods: ['POST', 'GET', 'HEAD', 'OPTIONS', 'PUT'],
  targets: [
    '/graphql',
    ...[
      '/graphql/',
      '/graphql?',
      '/graphql?query={hello}',
      '/graphql?query={user(id:1){id}}',
      '/graphql/x',
      '/GraphQL',
    ],
    ...['/%67raphql', 'http://h/graphql', '/', '/x', '*'],
  ],
  headers: [
    ...[
      '*/*',
      'application/json',
      'application/graphql-response+json',
      'text/html',
      'text/event-stream',
      '',
    ].map((accept) => `Accept: ${accept}`),
    'Accept: application/graphql-response+json, application/json;q=0.9',
    'Accept: application/graphql-response+json;q=0.1, application/json',
    'Accept: application/json;q=0',
    'Accept: text/event-stream;q=0, application/json',
    'Accept: multipart/mixed, application/json',
    'Accept: application/json, text/event-stream',
    'Accept: APPLICATION/JSON',
    'accept: application/json, Text/Event-Stream',
    ...[
      'application/json; charset=utf-8',
      'application/json;charset=UTF-8',
      'application/json ;charset=utf8',
    ].map((type) => `Content-Type: ${type}`),
    ...[
      'application/json; charset=latin1',
      'Application/JSON',
      'text/plain',
      'application/graphql+json',
      '',
    ].map((type) => `Content-Type: ${type}`),
    ...['application/json; charset="utf-8"', 'application/json;', 'application/json; x=1', 'nonsense'].map(
      (type) => `content-type: ${type}`,
    ),
  ],
  usual: [JSON_LABEL],
  bodies: [
    '{"query":"{hello}"}',
    '{"query":"query($id:ID!){user(id:$id){id name}}","variables":{"id":"1"}}',
    '{"query":"query($id:ID!){user(id:$id){id name}}"}',
    '{"query":"{users{id name email}}"}',
    '{"query":"query A{hello} query B{a:hello}","operationName":"B"}',
    '{"query":"query A{hello} query B{a:hello}"}',
    '{"query":"subscription{userCreated{id}}"}',
    '{"query":"{hello"}',
    '{"query":"{helo}"}',
    '{"query":"{__schema{queryType{name}}}"}',
    '{"query":7}',
    '{"query":null}',
    '{"query":"{hello}","variables":[]}',
    '{"query":"{hello}","variables":"{}"}',
    '{"query":"{hello}","extensions":{"a":1},"operationName":null}',
    '[{"query":"{hello}"}]',
    `{"query":"{hello}"${' '.repeat(400 - 19)}}`,
    `{"query":"{hello}"${' '.repeat(401 - 19)}}`,
    `{"query":"{${'hello '.repeat(50)}}"}`,
    ...brokenBodies,
  ],
};

/** They change what is stored: one at a time, so that no order can differ. */
const mutations: OddRequests = {
  ...graphql,
  methods: ['POST', 'GET'],
  bodies: [
    '{"query":"mutation{createUser(name:\\"Ä\\",email:\\"a@x.y\\"){id name email}}"}',
    '{"query":"mutation{createUser(name:\\"\\",email:\\"\\"){id}}"}',
    '{"query":"mutation($n:String!){createUser(name:$n,email:\\"a@x.y\\"){id}}","variables":{"n":7}}',
  ],
};

const webhook: OddRequests = {
  methods: ['POST', 'GET', 'HEAD', 'PUT', 'OPTIONS'],
  targets: [
    '/webhook',
    '/webhook/',
    '/webhook?x=1',
    '/webhook/x',
    '/Webhook',
    'http://h/webhook',
    '/',
    '/x',
    '*',
  ],
  headers: [
    'X-Webhook-Token: sesame',
    'x-webhook-token: wrong',
    'x-webhook-token:',
    'Webhook-Id: 7',
    `Idempotency-Key: ${'k'.repeat(256)}`,
    'Content-Type: text/plain',
    'Content-Type: nonsense',
    'Content-Type:',
    'Accept: text/html',
  ],
  usual: ['X-Webhook-Token: sesame', JSON_LABEL],
  bodies: [
    '{"event":"nobody.knows","data":{"a":1}}',
    '{"event":7}',
    '{}',
    `{"event":"x"${' '.repeat(300 - 13)}}`,
    `{"event":"x"${' '.repeat(301 - 13)}}`,
    `{"event":"x"${' '.repeat(250 - 12)}`,
    ...brokenBodies,
  ],
};

async function agree(
  twins: LaneTwins,
  door: Door,
  requests: readonly OddRequest[],
  apart: boolean,
): Promise<void> {
  const { lane, framework } = await twins.ask(door, pieces(requests, apart));
  assert.equal(lane, framework);
}

const samples: readonly (readonly [Door, OddRequests, count: number])[] = [
  ['rest', rest, 3],
  ['graphql', graphql, 3],
  ['graphql', mutations, 1],
  ['webhook', webhook, 3],
];

/** Things that make a difference only together. */
const pairs: readonly (readonly [Door, string, body: string])[] = [
  ['graphql', 'Accept: application/json, text/event-stream', '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'Accept: application/graphql-response+json', '{"query":"{helo}"}'],
  ['graphql', 'Accept: application/graphql-response+json', '{"query":"subscription{userCreated{id}}"}'],
  ['graphql', 'Accept: text/plain', '{"query":'],
  // It would fit the budget once, not twice.
  ['webhook', 'X-Webhook-Token: sesame', `{"event":"x"${' '.repeat(250 - 12)}`],
];

/** How many requests were counted, by door, route, method and status. */
async function counts(url: string | undefined): Promise<string> {
  const text = await (await fetch(`${url}/actuator/prometheus`)).text();
  return text
    .split('\n')
    .filter((line) => /^(http_server_requests|graphql_\w+?)_(seconds_count|total)\{/.test(line))
    .filter((line) => !line.includes('door="management"'))
    .sort()
    .join('\n');
}

async function sameCounts({ lane, framework }: LaneTwins): Promise<string> {
  const both = () => Promise.all([counts(lane.urls.management), counts(framework.urls.management)]);
  // A reply is counted a moment after the client has it.
  await waitFor('the counts to agree', async () => {
    const [byLane, byFramework] = await both();
    return byLane === byFramework;
  }).catch(() => {});
  const [byLane, byFramework] = await both();
  assert.equal(byLane, byFramework);
  return byLane;
}

/** Two users of REST; the last of those whose ids are asked for is unknown. */
async function addUsers(twins: LaneTwins): Promise<void> {
  const body = '{"name":"N","email":"n@x.y"}';
  const head = `POST /users HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  for (let i = 0; i < 2; i++) await twins.ask('rest', [head + body]);
}

const plain: Readonly<Record<string, OddRequests>> = { rest, graphql, webhook };

for (const door of ['rest', 'graphql', 'webhook'] as const) {
  test(`${door}: a plain request goes by the lane; what differs in one thing has the framework's reply`, async () => {
    await using twins = await startLaneTwins({ env });
    await addUsers(twins);
    const [first, ...others] = almostPlain(plain[door] ?? rest);
    assert.ok(first);
    const before = twins.slowly;
    const { lane, framework } = await twins.ask(door, pieces([first], false));
    assert.match(lane, /^HTTP\/1\.1 200 /);
    assert.equal(lane, framework);
    assert.equal(twins.slowly, before);
    for (const other of others) await agree(twins, door, [other], true);
    for (const [of, line, body] of pairs) {
      if (of !== door) continue;
      const head = `POST /${door} HTTP/1.1\r\nHost: x\r\n${JSON_LABEL}\r\n${line}\r\nContent-Length: ${body.length}\r\n\r\n`;
      await agree(twins, door, [{ head, body: Buffer.from(body) }], false);
    }
    assert.match(await sameCounts(twins), new RegExp(`door="${door}"`));
  });
}

test('with the lane and without it, random requests have the same replies, and are counted alike', async () => {
  await using twins = await startLaneTwins({ env });
  await addUsers(twins);
  for (const [door, of, maxLength] of samples) {
    await fc.assert(
      fc.asyncProperty(
        fc.array(oddRequest(of), { minLength: 1, maxLength }),
        fc.boolean(),
        (requests, apart) => agree(twins, door, requests, apart),
      ),
      { numRuns: RUNS },
    );
  }
  await sameCounts(twins);
  assert.deepEqual(twins.lane.log.broken, []);
});
