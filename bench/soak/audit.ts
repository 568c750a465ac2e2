import { setTimeout as delay } from 'node:timers/promises';
import { type Effects, readEffects, TRACED } from '../../test/proof/kill/effects.ts';
import type { Ledger } from '../../test/proof/kill/ledger.ts';
import type { StoredJob } from '../../test/proof/kill/store-reader.ts';
import type { AuditResult } from './outcome.ts';
import type { Store } from './store.ts';

/** Time limit for the open deliveries at the end, in milliseconds. */
const DRAIN = 120_000;

/** Waits until all deliveries are handled; resolves to the problems found. */
export async function drained(store: Store): Promise<readonly string[]> {
  const deadline = performance.now() + DRAIN;
  for (;;) {
    const open = await store.openJobs();
    if (open === 0) return [];
    if (performance.now() > deadline)
      return [`${open} jobs are still open ${DRAIN / 1_000} s after the last request`];
    await delay(250);
  }
}

/**
 * Compares the store with the acknowledgements that clients received and with the effects of handlers. Call
 * it after the last write.
 */
export async function audit(store: Store, ledger: Ledger, effectsFile: string): Promise<AuditResult> {
  const acknowledged = [...ledger.deliveries].flatMap(([token, { known, event }]) =>
    known === 'acknowledged' ? [{ token, event }] : [],
  );
  const problems: string[] = [];
  const note = async (work: () => Promise<void>) => {
    await work().catch((error: Error) => void problems.push(error.message));
  };
  await note(() => store.check());
  await note(async () => ledger.reconcile(await store.content()));
  const effects = readEffects(effectsFile);
  problems.push(...unhandled(acknowledged, await store.jobs(), effects));
  const handledAgain = [...effects.values()].filter(
    (attempts) => attempts.filter(({ ended }) => ended).length > 1,
  );
  return {
    users: ledger.users,
    deliveries: acknowledged.length,
    handledAgain: handledAgain.length,
    problems,
  };
}

/**
 * Problems with the jobs of acknowledged deliveries: each must have one job, which is done, and whose handler
 * has ended.
 */
export function unhandled(
  acknowledged: readonly { readonly token: string; readonly event: string }[],
  jobs: readonly StoredJob[],
  effects: Effects,
): readonly string[] {
  const byToken = Map.groupBy(jobs, ({ token }) => token);
  return acknowledged
    .filter(({ event }) => TRACED.has(event))
    .flatMap(({ token, event }) => {
      const found = byToken.get(token) ?? [];
      const states = found.map(({ status }) => status).join(', ');
      if (states !== 'done') return [`delivery ${token} (${event}) has the jobs: ${states || 'none'}`];
      if (effects.get(token)?.some(({ ended }) => ended)) return [];
      return [`delivery ${token} (${event}) is done, and its handler has not ended`];
    })
    .slice(0, 10);
}
