import assert from 'node:assert/strict';
import type { Effects } from '../kill/effects.ts';

/** A delivery that is handled in order, and when it was sent and acknowledged, in milliseconds. */
export interface OrderedDelivery {
  readonly token: string;
  readonly key: number;
  readonly sentAt: number;
  /** Infinity when it was not acknowledged. */
  readonly answeredAt: number;
}

/**
 * Deliveries of one key are handled one at a time, and one that was acknowledged before another one was sent is handled
 * for good before that one is begun. Those that were under way at the same time have no order.
 */
export function checkConcurrentOrder(deliveries: readonly OrderedDelivery[], effects: Effects): void {
  for (const group of Map.groupBy(deliveries, ({ key }) => key).values()) {
    const attempts = group.flatMap(({ token }) =>
      (effects.get(token) ?? []).map((one) => ({ token, ...one })),
    );
    let last = -1;
    for (const { token, begunAt, ended, endedAt } of attempts.toSorted((a, b) => a.begunAt - b.begunAt)) {
      assert.ok(begunAt > last, `${token} began while another one of its key was in hand`);
      // One that did not end was killed.
      if (ended) last = endedAt;
    }
    for (const later of group) {
      const begun = Math.min(...(effects.get(later.token) ?? []).map(({ begunAt }) => begunAt));
      for (const earlier of group) {
        if (earlier.answeredAt >= later.sentAt) continue;
        const ends = (effects.get(earlier.token) ?? []).map((one) => Math.max(one.begunAt, one.endedAt));
        assert.ok(begun > Math.max(...ends), `${later.token} overtook ${earlier.token}`);
      }
    }
  }
}
