import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../test/support/wait-for.ts';
import { StoreUnavailableError } from '../core/errors.ts';
import { StoredTokens } from './open-policy.ts';

type TokenStore = ConstructorParameters<typeof StoredTokens>[0];

const TOKEN = 'portico_one';

/** A store whose answers a test decides. */
function storeOf() {
  const state = { live: ['digest'], isDown: false, reads: 0, uses: [] as [string, number][] };
  const store: TokenStore = {
    async live() {
      state.reads++;
      await sleep(1);
      if (state.isDown) throw new StoreUnavailableError('down');
      return state.live.map((digest) => ({ name: 'ci', digest, scopes: ['a'], expiresAt: null }));
    },
    async noteUses(uses) {
      state.uses.push(...uses);
    },
  };
  return { state, store };
}

const log = { warn() {} };

test('a new token is found by one read, which all that wait for it share', async () => {
  const { state, store } = storeOf();
  await using tokens = new StoredTokens(store, { log, interval: 3_600_000 });
  await waitFor('the first read', () => tokens.find('digest', 0) !== undefined);
  const before = state.reads;
  state.live = ['digest', 'new'];
  const found = await Promise.all(Array.from({ length: 20 }, () => tokens.check(TOKEN, 'new')));
  assert.ok(found.every((caller) => caller !== undefined && caller === found[0]));
  assert.ok(state.reads - before <= 2);
  assert.equal(await tokens.check('no-prefix', 'new'), undefined);
});

test('a revoked token is refused after the next read, for what was opened with it too', async () => {
  const { state, store } = storeOf();
  await using tokens = new StoredTokens(store, { log, interval: 2 });
  const caller = await waitFor('the first read', () => tokens.find('digest', 0));
  state.live = [];
  await waitFor('the revocation', () => tokens.find('digest', 0) === undefined);
  assert.equal(caller.isValidAt(0), false);
  assert.equal(await tokens.check(TOKEN, 'digest'), undefined);
});

test('a database that does not answer makes no token good: it may be revoked', async () => {
  const { state, store } = storeOf();
  await using tokens = new StoredTokens(store, { log, interval: 2 });
  await waitFor('the first read', () => tokens.find('digest', 0));
  state.isDown = true;
  await waitFor('the end of trust', () => tokens.find('digest', 0) === undefined);
  await assert.rejects(tokens.check(TOKEN, 'digest'), StoreUnavailableError);
  state.isDown = false;
  assert.notEqual(await tokens.check(TOKEN, 'digest'), undefined);
  await waitFor('trust', () => tokens.find('digest', 0));
});

test('last uses are written at the end, once', async () => {
  const { state, store } = storeOf();
  {
    await using tokens = new StoredTokens(store, { log, interval: 3_600_000 });
    const caller = await waitFor('the first read', () => tokens.find('digest', 0));
    caller.usedAt = 77;
    assert.deepEqual(state.uses, []);
  }
  assert.deepEqual(state.uses, [['digest', 77]]);
});
