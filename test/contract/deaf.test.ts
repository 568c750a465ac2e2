import assert from 'node:assert/strict';
import { before, describe, mock, test } from 'node:test';
import timers, { setImmediate } from 'node:timers/promises';
import { checks } from './catalogue.ts';
import type { Check, Door, Reply, Subject } from './check.ts';

/** Checks for which such a reply is the right one, and which ask for nothing else. */
const right: Readonly<Record<string, readonly string[]>> = {
  UP: ['MGMT-01', 'MGMT-02'],
  'a receipt': ['HOOK-01', 'HOOK-02', 'HOOK-03', 'HOOK-08', 'HOOK-09', 'ALL-29'],
};

/** A service that gives one and the same reply to everything. */
function parrot(status: number, headers: Reply['headers'], text: string): Subject {
  const door: Door = {
    url: 'http://127.0.0.1:9',
    send: async () => ({ status, headers, text, json: () => JSON.parse(text) }),
  };
  return {
    graphql: door,
    rest: door,
    management: door,
    webhook: door,
    logs: () => [],
    restart: async () => {},
  };
}

const json = { 'content-type': 'application/json', allow: 'GET, HEAD, POST' };
const parrots: Readonly<Record<string, Subject>> = {
  'an empty 200': parrot(200, { 'content-type': 'text/plain' }, ''),
  'an empty object': parrot(200, json, '{}'),
  'an empty list of users': parrot(200, json, '{"status":"success","data":[]}'),
  UP: parrot(200, json, '{"status":"UP"}'),
  'a receipt': parrot(200, { 'content-type': 'text/plain; charset=utf-8' }, 'Webhook received'),
  'an empty 405': parrot(405, json, ''),
  'a 404': parrot(404, json, '{"status":"error","message":"Endpoint not found"}'),
  'a 401': parrot(401, { ...json, 'www-authenticate': 'Basic realm="x"' }, 'Unauthorized'),
  'a 500': parrot(500, json, '{"status":"error","message":"Internal Server Error"}'),
};

async function passes(check: Check, subject: Subject): Promise<boolean> {
  try {
    await check.run(subject);
    return true;
  } catch {
    return false;
  }
}

// A check that such a service passes would not notice if the real one were broken like this.
describe('no check passes a service that answers everything with the same', { concurrency: true }, () => {
  // What says the same at every look is not looked at for a minute: the pauses in between take no time.
  before(() => {
    mock.method(timers, 'setTimeout', () => setImmediate());
  });

  for (const [name, subject] of Object.entries(parrots)) {
    test(name, async () => {
      const passed = await Promise.all(
        checks.map(async (check) => ((await passes(check, subject)) ? [check.id] : [])),
      );
      assert.deepEqual(passed.flat(), right[name] ?? []);
    });
  }
});
