import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Cut, oddRequest, pieces } from '../support/odd-requests.ts';
import { proofCount } from '../support/proof-settings.ts';
import {
  type AskOptions,
  type Authorization,
  latestDelivery,
  sameCounts,
  sameDeliveries,
  sameExchanges,
  startTransportTwins,
  type TransportTwins,
} from '../support/transport-twins.ts';
import { ADMIN, guarded, secured, users } from './management-requests.ts';
import {
  addContents,
  configModule,
  doorSamples,
  env,
  managementSamples,
  RELATIONS,
  type Sample,
} from './samples.ts';

/** Connections of each sample, per request that one may have. */
const RUNS = proofCount('PORTICO_RANDOM_REQUESTS', 35);
/** The log of exchanges keeps those of so many connections: each has three requests at most, one before and one behind them. */
const RUNS_RECORDED = 20;

// When the bytes of one request are free again for the next one in the same piece is a matter of the moment.
const budget = { WEBHOOK_MAX_BYTES_IN_FLIGHT: '10000' };

async function agreeOn(
  twins: TransportTwins,
  { door, requests, maxLength, volatile = false }: Sample,
  headers: Authorization = {},
): Promise<void> {
  const options: AskOptions = { volatile, delivery: await latestDelivery(twins, headers) };
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(oddRequest(requests), { minLength: 1, maxLength }),
      fc.constantFrom<Cut[]>('together', 'each', 'each', 'apart'),
      async (odd, cut) => {
        await twins.agree(door, pieces(odd, cut), options);
        if (++runs % RUNS_RECORDED === 0) await sameExchanges(twins, { headers, volatile });
      },
    ),
    { numRuns: RUNS * maxLength },
  );
  assert.match(await sameCounts(twins, headers), new RegExp(`door="${door}"`));
  assert.deepEqual(twins.fast.log.broken, []);
}

describe('with the fast path and without it, random requests have the same replies, and are counted and recorded alike', {
  concurrency: true,
}, () => {
  for (const [door, hasRows] of [
    ['rest', false],
    ['rest', true],
    ['graphql', false],
    ['webhook', false],
    ['management', false],
  ] as const) {
    test(`${door}${hasRows ? ', rows' : ''}`, async () => {
      const module = configModule('', hasRows ? RELATIONS : '');
      await using twins = await startTransportTwins({ env: { ...env, ...budget }, module });
      await addContents(twins, hasRows);
      for (const sample of [...doorSamples, ...managementSamples]) {
        if (sample.door === door && (sample.hasRows ?? false) === hasRows) await agreeOn(twins, sample);
      }
      await sameDeliveries(twins);
    });
  }

  test('a secured management door', async () => {
    const [name = '', value = ''] = ADMIN.split(': ');
    const module = configModule(`users: ${users}`);
    await using twins = await startTransportTwins({ env: { ...env, ...budget, ...secured }, module });
    await addContents(twins);
    const sample: Sample = { what: 'secured', door: 'management', requests: guarded, maxLength: 3 };
    await agreeOn(twins, sample, { [name]: value });
  });
});
