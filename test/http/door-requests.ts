import type { OddRequests } from '../support/odd-requests.ts';

export const JSON_LABEL = 'Content-Type: application/json';

/** Bodies that no door takes for JSON, or for good JSON. */
export const brokenBodies = [
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

/** What is asked of each door. */
export const rest: OddRequests = {
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

const users = {
  headers: ['Content-Type: text/plain', 'Content-Type:', 'Sec-Fetch-Site: none'],
  usual: [JSON_LABEL],
  bodies: [
    '{"name":"Ä","email":"a@x.y"}',
    '{"name":"","email":"a@x.y"}',
    '{"name":"N"}',
    `{"name":"${'n'.repeat(501)}","email":"a@x.y"}`,
    `{"name":"N","email":"a@x.y"${' '.repeat(64 * 1024)}}`,
    ...brokenBodies,
  ],
};

/** Writes of REST, which succeed as they stand. */
export const creates: OddRequests = {
  ...users,
  methods: ['POST', 'PUT', 'OPTIONS'],
  targets: ['/users', '/users/', '/users?x', '/users/1', '/user%73'],
};
export const updates: OddRequests = {
  ...users,
  methods: ['PUT', 'POST', 'OPTIONS', 'HEAD'],
  targets: ['/update/1', '/update/1/', '/update/', '/update', '/update/77', '/update/x', '/update/%31'],
};
export const deletes: OddRequests = {
  ...users,
  methods: ['DELETE', 'POST', 'OPTIONS', 'GET'],
  targets: ['/delete/1', '/delete/2/', '/delete/', '/delete', '/delete/77', '/delete/x', '/delete/1?x'],
  usual: [],
  bodies: ['', '{}', ...brokenBodies],
};

const row = {
  headers: [
    ...['return=minimal', 'resolution=ignore', 'max-affected=2', 'transaction=all', 'handling=lenient'].map(
      (preference) => `Prefer: ${preference}`,
    ),
    ...['Idempotency-Key: k', 'If-Match: *', 'If-Match: "1"', 'Content-Type: text/csv', 'Accept: text/csv'],
  ],
  usual: [JSON_LABEL],
};

/** Requests for rows of relations. */
export const rows: OddRequests = {
  ...row,
  methods: ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT'],
  targets: [
    '/authors',
    ...['', '1', '1/', '2', '0', '01', 'x', '%31', '1,2', '1/2', '1?fields=name', '1?x', '?x'].map(
      (end) => `/authors/${end}`,
    ),
    ...[
      'fields=id',
      'limit=1',
      'sort=-name',
      'name=N',
      'nam=N',
      'loans.reader=a',
      'cursor=x',
      'where={',
      '%',
    ].map((query) => `/authors?${query}`),
    ...['1,a', '1%2Ca', '1,', '1,a,b', '1,%61', ',a'].map((key) => `/loans/${key}`),
    ...['/_batch', '/_batch/', '/_batch/1', '/_changes', '/_changes?relation=none', '/Authors', '/_other'],
    '/authors?where={"or":[{"name":{"prefix":"N"}},{"loans":{"none":{}}}]}',
  ],
  usual: [],
  bodies: ['', ...brokenBodies],
};
/** Writes of rows, which succeed as they stand. */
export const rowCreates: OddRequests = {
  ...row,
  methods: ['POST', 'PUT', 'OPTIONS', 'PATCH'],
  targets: ['/authors', '/authors/', '/authors?on=id', '/authors?x', '/author%73', '/loans'],
  bodies: [
    '{"name":"N"}',
    ...[
      '[{"name":"N"},{"name":"O"}]',
      '[]',
      '{"name":7,"nam":1}',
      '[{"name":"N"},{}]',
      '{"id":1,"name":"N"}',
    ],
    ...['{"author_id":1,"reader":"b"}', '{"author_id":77,"reader":"b"}', 'name\nN\n'],
    ...brokenBodies,
  ],
};
export const rowChanges: OddRequests = {
  ...row,
  methods: ['PATCH', 'POST', 'OPTIONS', 'GET'],
  targets: [
    '/authors/1',
    '/authors/1/',
    '/authors/',
    '/authors/99999',
    '/authors/x',
    '/authors/%31',
    '/authors/1?x',
  ],
  bodies: ['{"name":"M"}', '{}', '{"id":2}', '{"name":null}', ...brokenBodies],
};
export const rowPuts: OddRequests = {
  ...row,
  methods: ['PUT', 'POST'],
  targets: ['/loans/1,a', '/loans/1,c', '/loans/77,a', '/loans/1', '/loans/', '/authors/1', '/loans/1,a?x'],
  headers: [...row.headers, 'If-None-Match: *'],
  bodies: ['{}', '{"reader":"z"}', '{"name":"L"}', ...brokenBodies],
};
export const rowDeletes: OddRequests = {
  ...row,
  methods: ['DELETE', 'POST', 'GET'],
  targets: [
    '/authors/99999',
    '/authors/2',
    '/loans/1,a',
    '/loans/',
    '/authors',
    '/authors?name=M',
    '/authors/1?name=N',
  ],
  usual: [],
  bodies: ['', '{}', ...brokenBodies],
};
export const batches: OddRequests = {
  ...row,
  methods: ['POST', 'PUT', 'GET'],
  targets: ['/_batch', '/_batch/', '/_batch?x', '/_batc%68'],
  bodies: [
    '{"writes":[{"method":"POST","path":"/authors","body":{"name":"B"}},{"method":"PUT","path":"/loans/{$0/id},r","body":{}}]}',
    ...['{"writes":[]}', '{"writes":7}', '{}'],
    '{"writes":[{"method":"POST","path":"/authors","body":{"name":"B"}},{"method":"DELETE","path":"/authors/77"}]}',
    '{"writes":[{"method":"PATCH","path":"/authors/1","headers":{"If-Match":"\\"1\\""},"body":{"name":"B"}}]}',
    ...brokenBodies,
  ],
};

/** An extension with the SHA-256 of `{hello}`, and with another one. */
const [hashed, unknown] = [
  '9dd7ff987fac8d0d1979084ebde5ce8bd855cd066d1a34e98432275cc6bc264c',
  '0'.repeat(64),
].map((hash) => `"extensions":{"persistedQuery":{"version":1,"sha256Hash":"${hash}"}}`);

export const graphql: OddRequests = {
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
    ...['/%67raphql', 'http://h/graphql', '/graphql/assets/no', '/', '/x', '*'],
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
    '[{"query":"{hello}"},{"query":"{helo}"}]',
    '[{"query":"{hello}"},{},{}]',
    '[{"query":"{hello}"},7]',
    `{${unknown}}`,
    `{"query":"{hello}",${unknown}}`,
    '{"extensions":{"persistedQuery":{"version":2}}}',
    '{"documentId":"sha256:x","variables":{"id":"1"}}',
    '{"doc_id":7}',
    `{"query":"{hello}"${' '.repeat(400 - 19)}}`,
    `{"query":"{hello}"${' '.repeat(401 - 19)}}`,
    `{"query":"{${'hello '.repeat(50)}}"}`,
    ...brokenBodies,
  ],
};

/** They change what is stored: one at a time, so that no order can differ. */
export const mutations: OddRequests = {
  ...graphql,
  methods: ['POST', 'GET'],
  bodies: [
    '{"query":"mutation{createUser(name:\\"Ä\\",email:\\"a@x.y\\"){id name email}}"}',
    '{"query":"mutation{createUser(name:\\"\\",email:\\"\\"){id}}"}',
    '{"query":"mutation($n:String!){createUser(name:$n,email:\\"a@x.y\\"){id}}","variables":{"n":7}}',
    `{${hashed}}`,
    `{"query":"{hello}",${hashed}}`,
    `{${hashed},"operationName":null}`,
  ],
};
