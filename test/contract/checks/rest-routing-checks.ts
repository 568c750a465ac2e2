import assert from 'node:assert/strict';
import type { Check } from '../check.ts';
import { assertMessage, changesNothing, created, jsonBody, mediaType, person } from '../clients/rest.ts';

const unknownPaths = [
  '/',
  '/?users',
  '/docs',
  '/health',
  '/openapi.json',
  '/favicon.ico',
  '/Users',
  '/USERS/1',
  '/user',
  '/user/1',
  '/usersx',
  '/xusers',
  '/create',
  '/Update/1',
  '/updates/1',
  '/deleted/1',
  '/actuator/health',
  '/graphql',
  '/webhook',
  '/api/users',
  '/livez',
  '/nowhere/users/1',
];

/** Requests on a known first segment that the table of CONTRACT.md#rest-routes does not have. */
function misfits(id: number): readonly (readonly [method: string, path: string])[] {
  return [
    ['PUT', '/users'],
    ['DELETE', '/users'],
    ['PATCH', '/users'],
    ['PUT', `/users/${id}`],
    ['DELETE', `/users/${id}`],
    ['PATCH', `/users/${id}`],
    ['GET', `/update/${id}`],
    ['POST', `/update/${id}`],
    ['PATCH', `/update/${id}`],
    ['DELETE', `/update/${id}`],
    ['GET', `/delete/${id}`],
    ['POST', `/delete/${id}`],
    ['PUT', `/delete/${id}`],
    ['GET', '/update'],
    ['GET', '/delete'],
    ['POST', '/update'],
    ['POST', '/delete'],
  ];
}

const body = () => ({ headers: jsonBody, body: JSON.stringify(person()) });

/** Which resource a path means, and what happens beside the table of CONTRACT.md#rest-routes. */
export const restRoutingChecks: readonly Check[] = [
  {
    id: 'REST-40',
    heading: 'errors',
    level: 'MUST',
    title: 'a first segment other than users, update, delete is 404 "Endpoint not found"',
    async run(subject) {
      await created(subject);
      for (const path of unknownPaths) {
        const reply = await subject.rest.send('GET', path);
        assert.equal(reply.status, 404, path);
        assert.equal(reply.text, '{"status":"error","message":"Endpoint not found"}', path);
        assertMessage(reply, 'error', 'Endpoint not found');
      }
    },
  },
  {
    id: 'REST-41',
    heading: 'errors',
    level: 'MUST',
    title: 'the same goes for every method, with and without a body',
    async run(subject) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        for (const options of [{}, body(), { headers: jsonBody, body: '{' }]) {
          const reply = await subject.rest.send(method, '/nothing/1', options);
          assert.equal(reply.status, 404, method);
          assertMessage(reply, 'error', 'Endpoint not found');
        }
      }
      const head = await subject.rest.send('HEAD', '/nothing');
      assert.equal(head.status, 404);
      assert.equal(head.text, '');
    },
  },
  {
    id: 'REST-42',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'another method on a known first segment has an empty body and changes nothing',
    async run(subject) {
      const { id } = await created(subject);
      await changesNothing(subject, async () => {
        for (const [method, path] of misfits(id)) {
          const bare = await subject.rest.send(method, path);
          assert.equal(bare.text, '', `${method} ${path}`);
          const full = await subject.rest.send(method, path, body());
          assert.equal(full.text, '', `${method} ${path} with a body`);
        }
      });
    },
  },
  {
    id: 'REST-43',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'PUT /update and DELETE /delete without an id have an empty body and change nothing',
    async run(subject) {
      await created(subject);
      await changesNothing(subject, async () => {
        for (const [method, path] of [
          ['PUT', '/update'],
          ['PUT', '/update?id=1'],
          ['DELETE', '/delete'],
          ['DELETE', '/delete?id=1'],
        ] as const) {
          assert.equal((await subject.rest.send(method, path, body())).text, '', `${method} ${path}`);
        }
      });
    },
  },
  {
    id: 'REST-44',
    heading: 'rest-envelope',
    level: 'MUST',
    title: 'empty replies are application/json too',
    async run(subject) {
      const { id } = await created(subject);
      const requests = [...misfits(id), ['PUT', '/update'], ['DELETE', '/delete']] as const;
      for (const [method, path] of requests) {
        const reply = await subject.rest.send(method, path);
        assert.equal(mediaType(reply), 'application/json', `${method} ${path}`);
      }
    },
  },
  {
    id: 'REST-45',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'empty replies are 405 with an Allow that does not offer what was refused',
    async run(subject) {
      const { id } = await created(subject);
      const requests = [...misfits(id), ['PUT', '/update'], ['DELETE', '/delete']] as const;
      for (const [method, path] of requests) {
        const reply = await subject.rest.send(method, path);
        assert.equal(reply.status, 405, `${method} ${path}`);
        assert.equal(typeof reply.headers.allow, 'string', `${method} ${path}`);
        const needsId = path === '/update' || path === '/delete';
        if (!needsId) assert.ok(!allowed(reply.headers.allow).includes(method), `${method} ${path}`);
      }
    },
  },
  {
    id: 'REST-46',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'Allow names the methods that a path has',
    async run(subject) {
      const { id } = await created(subject);
      for (const [path, methods] of [
        ['/users', ['GET', 'HEAD', 'POST']],
        [`/users/${id}`, ['GET', 'HEAD']],
        [`/update/${id}`, ['PUT']],
        [`/delete/${id}`, ['DELETE']],
      ] as const) {
        const { headers } = await subject.rest.send('PATCH', path);
        const offered = allowed(headers.allow).filter((method) => method !== 'OPTIONS');
        assert.deepEqual(offered, methods, path);
      }
    },
  },
  {
    id: 'REST-47',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'POST /users/<id> is no create: empty body, 405, nothing changed',
    async run(subject) {
      const { id } = await created(subject);
      const reply = await changesNothing(subject, () => subject.rest.send('POST', `/users/${id}`, body()));
      assert.equal(reply.text, '');
      assert.equal(reply.status, 405);
    },
  },
  {
    id: 'REST-48',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'HEAD of a path that has no GET is 405 with an empty body',
    async run(subject) {
      const { id } = await created(subject);
      for (const path of [`/update/${id}`, `/delete/${id}`]) {
        const reply = await changesNothing(subject, () => subject.rest.send('HEAD', path));
        assert.equal(reply.status, 405, path);
        assert.equal(reply.text, '', path);
      }
    },
  },
  {
    id: 'REST-49',
    heading: 'rest-routes',
    level: 'SHOULD',
    title: 'an empty second segment is no id: empty body, 405, nothing changed',
    async run(subject) {
      await created(subject);
      await changesNothing(subject, async () => {
        for (const [method, path] of [
          ['PUT', '/update/'],
          ['DELETE', '/delete/'],
        ] as const) {
          const reply = await subject.rest.send(method, path, body());
          assert.equal(reply.text, '', `${method} ${path}`);
          assert.equal(reply.status, 405, `${method} ${path}`);
        }
      });
    },
  },
];

function allowed(header: string | string[] | undefined): readonly string[] {
  return String(header ?? '')
    .split(',')
    .map((method) => method.trim())
    .filter((method) => method !== '')
    .sort();
}
