import { ClaimGate } from '../../inbox/dispatch/claim-gate.ts';
import { AttemptError, type Target } from '../../inbox/dispatch/target.ts';
import { headersOfTrace } from '../../observability/trace/trace-fields.ts';
import { limitsOf, type TargetDefaults } from '../handler-target.ts';
import type { Signer } from '../schemes/scheme.ts';
import { forwardedHeaders } from './forwarded-headers.ts';
import type { Poster } from './post.ts';
import type { ForwardSettings } from './read-forwards.ts';
import { retryAfterMs } from './retry-after.ts';
import { transformer } from './transform.ts';

/** The target name of a forward address. */
export function forwardTargetName(name: string): string {
  return `forward:${name}`;
}

/** Status codes with which `Retry-After` is honoured. */
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

/** Those that are about the receiver and not about one delivery: `Retry-After` then holds back all deliveries to it. */
const PAUSING: ReadonlySet<number> = new Set([429, 503]);

export interface ForwardOptions {
  /** Maximum size of what a transformation makes, in bytes, unless more was received. */
  readonly maxBodyBytes: number;
  /** Called when the receiver wants nothing for a time, in milliseconds. */
  onPause?(status: number, wait: number): void;
}

/**
 * A forward address as a target of the dispatcher. It sends the body, unchanged unless there is a transformation, signed
 * with Standard Webhooks under the delivery's own id, so that the receiver can tell a retry from another delivery.
 */
export function forwardTarget(
  settings: ForwardSettings,
  defaults: TargetDefaults,
  sign: Signer | undefined,
  poster: Poster,
  { maxBodyBytes, onPause = () => {} }: ForwardOptions,
): Target {
  const { name, rate, transform } = settings;
  const gate = new ClaimGate(rate);
  const change = transform === undefined ? undefined : transformer(transform, maxBodyBytes);
  return {
    name: forwardTargetName(name),
    ...limitsOf(settings, defaults),
    gate,
    async run(job, signal, answered) {
      const { delivery, attempt } = job;
      const { id } = delivery;
      const unchanged = {
        url: settings.url,
        headers: {
          ...forwardedHeaders(delivery),
          'content-type': delivery.contentType ?? 'application/json',
          'user-agent': 'Portico',
        },
        body: delivery.body,
      };
      const sent = change === undefined ? unchanged : await change(job, unchanged, signal);
      const { url, body } = sent;
      const timestamp = Math.floor(Date.now() / 1_000);
      const headers = {
        ...sent.headers,
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-attempt': String(attempt),
        ...headersOfTrace(delivery.trace),
        ...sign?.({ id, timestamp, body }),
      };
      const { status, retryAfter, excerpt } = await poster.post({ url, headers, body, signal });
      answered({ status, body: '' });
      answered({ status, body: await excerpt });
      if (status >= 200 && status < 300) return;
      // Standard Webhooks: 410 means that the receiver wants no more deliveries.
      if (status === 410) throw new AttemptError('the receiver answered 410', 'never');
      const wait = RETRYABLE.has(status) ? retryAfterMs(retryAfter, Date.now()) : undefined;
      if (wait !== undefined && wait > 0 && PAUSING.has(status)) {
        gate.pause(wait);
        onPause(status, wait);
      }
      throw new AttemptError(`the receiver answered ${status}`, wait);
    },
  };
}
