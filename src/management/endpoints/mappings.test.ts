import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';

test("every route of every door, in the shape of Actuator's dispatcher servlets", async () => {
  const rest = [{ path: '/users/:id', methods: ['GET', 'HEAD'] }];
  await using app = await managementApp({
    mappings: new Map([
      ['rest', () => rest],
      ['webhook', () => []],
    ]),
  });
  const mapping = {
    handler: 'rest',
    predicate: '{GET, HEAD [/users/:id]}',
    details: {
      handlerMethod: { className: 'rest', name: '/users/:id', descriptor: '' },
      requestMappingConditions: {
        consumes: [],
        headers: [],
        methods: ['GET', 'HEAD'],
        params: [],
        patterns: ['/users/:id'],
        produces: [],
      },
    },
  };
  assert.deepEqual((await app.inject('/actuator/mappings')).json(), {
    contexts: {
      portico: {
        mappings: {
          dispatcherServlets: { rest: [mapping], webhook: [] },
          servletFilters: [],
          servlets: [],
        },
      },
    },
  });
});
