import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';
import { EventLoopWindows } from '../../telemetry/runtime.ts';
import type { Access } from '../masking.ts';

describe('eventloop', () => {
  /** Keeps the loop from everything else. */
  function block(milliseconds: number): void {
    const end = performance.now() + milliseconds;
    while (performance.now() < end);
  }

  const turns = async (milliseconds: number) => {
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
  };

  test('numbers in their units', async () => {
    await using app = await managementApp();
    await turns(100);
    const { window, utilization, delay } = (await app.inject('/actuator/eventloop')).json();
    assert.match(window, /^PT\d+(\.\d+)?S$/);
    for (const value of Object.values(utilization)) assert.ok(Number(value) >= 0 && Number(value) <= 1);
    assert.deepEqual(Object.keys(utilization), ['sinceStart', 'window']);
    const { unit, ...numbers } = delay;
    assert.equal(unit, 'milliseconds');
    assert.deepEqual(Object.keys(numbers), ['min', 'mean', 'max', 'p50', 'p90', 'p99', 'p999']);
    for (const value of Object.values(numbers)) assert.ok(typeof value === 'number' && value >= 0);
  });

  test('a loop that was blocked shows for how long', async () => {
    using windows = new EventLoopWindows();
    await turns(60);
    block(200);
    await turns(60);
    const { delay, utilization, windowMs } = windows.read();
    assert.ok((delay.max ?? 0) >= 150, `${delay.max} ms`);
    // The loop may have been idle for longer than it was told to wait.
    assert.ok(utilization.window > 0.9 * (200 / windowMs), `${utilization.window} of ${windowMs} ms`);
  });

  test('before anything is measured there is nothing to tell', () => {
    using windows = new EventLoopWindows();
    const { delay } = windows.read();
    for (const value of Object.values(delay)) assert.equal(value, 0);
  });

  test('what is long past no longer counts', async () => {
    using windows = new EventLoopWindows(100);
    await turns(30);
    block(150);
    await turns(30);
    const deadline = performance.now() + 10_000;
    while ((windows.read().delay.max ?? 0) >= 100 && performance.now() < deadline) await turns(50);
    assert.ok((windows.read().delay.max ?? 0) < 100);
  });
});

describe('mappings', () => {
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
});

describe('shutdown', () => {
  async function open(access?: Access) {
    const calls: string[] = [];
    const app = await managementApp({
      shutDown: () => calls.push('stop'),
      access: { endpoints: new Map(access === undefined ? [] : [['shutdown', access]]) },
    });
    return { app, calls, [Symbol.asyncDispose]: () => app.close() };
  }

  test('a POST is answered, then the stop begins', async () => {
    await using door = await open('unrestricted');
    const response = await door.app.inject({ method: 'POST', url: '/actuator/shutdown' });
    assert.equal(response.statusCode, 200);
    assert.deepEqual(response.json(), { message: 'Shutting down, bye...' });
    assert.equal(response.headers['content-type'], 'application/vnd.spring-boot.actuator.v3+json');
    assert.equal(response.headers.connection, 'close');
    await new Promise(setImmediate);
    assert.deepEqual(door.calls, ['stop']);
  });

  test('nothing else begins it', async () => {
    await using door = await open('unrestricted');
    for (const [method, status] of [
      ['GET', 405],
      ['HEAD', 405],
      ['DELETE', 405],
      ['OPTIONS', 200],
    ] as const) {
      const response = await door.app.inject({ method, url: '/actuator/shutdown' });
      assert.equal(response.statusCode, status, method);
      assert.equal(response.headers.allow, 'POST, OPTIONS');
    }
    const crossSite = { 'sec-fetch-site': 'cross-site' };
    const response = await door.app.inject({ method: 'POST', url: '/actuator/shutdown', headers: crossSite });
    assert.equal(response.statusCode, 403);
    await new Promise(setImmediate);
    assert.deepEqual(door.calls, []);
  });

  test('unless access is given it is not there, nor with access that only reads', async () => {
    for (const access of [undefined, 'none', 'read-only'] as const) {
      await using door = await open(access);
      const response = await door.app.inject({ method: 'POST', url: '/actuator/shutdown' });
      assert.equal(response.statusCode, 404, String(access));
      const { _links } = (await door.app.inject('/actuator')).json();
      assert.ok(!('shutdown' in _links));
      assert.deepEqual(door.calls, []);
    }
  });
});
