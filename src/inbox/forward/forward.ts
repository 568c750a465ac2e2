import type { InferOutput } from 'valibot';
import { pathTo, readObject, sluggedOf } from '../../config/schema/fields.ts';
import type { SecretResolver } from '../../config/secrets.ts';
import { didYouMean } from '../../core/text.ts';
import { headersOfTrace } from '../../core/trace.ts';
import { type ChangeType, changeName } from '../../relations/events.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import type { Signer } from '../../signatures/schemes.ts';
import { readSecrets } from '../../signatures/sources.ts';
import { checkFilter, forwardSchema } from '../config.ts';
import type { DeliveryHeaders, StoredDelivery } from '../delivery.ts';
import { headersOf } from '../delivery-body.ts';
import { ClaimRateLimit } from '../dispatch/claim-rate.ts';
import { AttemptError, type Target } from '../dispatch/target.ts';
import { limitsOf } from '../event-names.ts';
import { isPrivateHost } from './addresses.ts';
import type { Poster } from './poster.ts';
import { CONNECTION_HEADERS, checkTransform, transformer } from './transform.ts';

type TargetDefaults = Parameters<typeof limitsOf>[1];

/** The target name of a forward address. */
export function forwardTargetName(name: string): string {
  return `forward:${name}`;
}

/** Status codes for which `Retry-After` is honoured. */
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

/** Statuses about the receiver, not one delivery: their `Retry-After` pauses all deliveries to it. */
const PAUSING: ReadonlySet<number> = new Set([429, 503]);

interface ForwardOptions {
  /** Maximum size of a transformed body in bytes, unless the received body was larger. */
  readonly maxBodyBytes: number;
  /** Called when the receiver asks for a pause, in milliseconds. */
  onPause?(status: number, wait: number): void;
}

/**
 * A forward address as a target of the dispatcher. It sends the body, unchanged unless there is a
 * transformation, signed according to Standard Webhooks under the delivery's id, by which the receiver
 * recognizes a retry.
 */
export function forwardTarget(
  settings: ForwardSettings,
  defaults: TargetDefaults,
  sign: Signer | undefined,
  poster: Poster,
  { maxBodyBytes, onPause = () => {} }: ForwardOptions,
): Target {
  const { name, rate, transform } = settings;
  const rateLimit = new ClaimRateLimit(rate);
  const change = transform === undefined ? undefined : transformer(transform, maxBodyBytes);
  return {
    name: forwardTargetName(name),
    ...limitsOf(settings, defaults),
    rateLimit,
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
        rateLimit.pause(wait);
        onPause(status, wait);
      }
      throw new AttemptError(`the receiver answered ${status}`, wait);
    },
  };
}

/** The validated settings of a forward address. Times are in milliseconds. */
export interface ForwardSettings
  extends Readonly<Omit<InferOutput<typeof forwardSchema>, 'secrets' | 'events' | 'changes'>> {
  readonly name: string;
  /** The events to forward; undefined: all, or none if `users` or `changes` is set. */
  readonly events?: readonly string[] | undefined;
  /** The events of the changes of relations to send: `book.created`. */
  readonly changes?: readonly string[] | undefined;
  /** Standard Webhooks secrets for signing; empty: requests are not signed. */
  readonly secrets: readonly string[];
}

/**
 * Reads `webhook.forward`, called `path` in messages: by name, a URL or an object with one. The addresses may
 * get the changes of `relations`. Appends one line per problem to `problems`; with problems the result is
 * incomplete.
 */
export function readForwards(
  value: unknown,
  path: string,
  resolve: SecretResolver,
  problems: string[],
  relations: readonly Relation[] = [],
): readonly ForwardSettings[] {
  return sluggedOf({ value, path }, 'addresses', problems).flatMap(({ name, ...entry }) => {
    const given = typeof entry.value === 'string' ? { ...entry, value: { url: entry.value } } : entry;
    const forward = readObject(forwardSchema, given, problems);
    checkFilter(given, problems);
    checkTransform(given, problems);
    const secrets = readSecrets(given, 'standard', resolve, problems);
    if (forward === undefined) return [];
    const { hostname } = forward.url;
    if (!forward.allowPrivate && isPrivateHost(hostname)) {
      problems.push(
        `${entry.path}.url is the private address ${hostname}; set allowPrivate if that is intended`,
      );
    }
    const changes = changeNames(forward.changes ?? {}, `${entry.path}.changes`, relations, problems);
    return { ...forward, name, secrets, changes };
  });
}

/** The events of changes of relations. */
function changeNames(
  given: Readonly<Record<string, readonly ChangeType[]>>,
  path: string,
  relations: readonly Relation[],
  problems: string[],
): readonly string[] {
  return Object.entries(given).flatMap(([name, types]) => {
    const relation = relations.find((each) => each.name === name);
    const at = pathTo(path, name);
    if (relation?.changes === true) return types.map((type) => changeName(relation, type));
    if (name === USERS) problems.push(`${at}: write users: true beside changes`);
    else if (relation?.existing !== undefined)
      problems.push(`${at} is an existing table, and nothing records its changes; remove it`);
    else if (relation !== undefined)
      problems.push(`${at} has "changes": false in its declaration, so no change of it is recorded`);
    else
      problems.push(
        `${at} is no declared relation${didYouMean(
          name,
          relations.map((each) => each.name),
        )}`,
      );
    return [];
  });
}

const OF_THE_CONNECTION: ReadonlySet<string> = new Set(CONNECTION_HEADERS);

/** The kept headers of a delivery to forward; headers that Portico sets replace them. */
function forwardedHeaders(delivery: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  const kept = Object.entries(headersOf(delivery));
  return Object.fromEntries(kept.filter(([name]) => !OF_THE_CONNECTION.has(name)));
}

/** Maximum wait that a receiver can request, in milliseconds. */
const MAX_RETRY_AFTER = 24 * 60 * 60 * 1_000;

/** Parses Retry-After (RFC 9110 10.2.3) to milliseconds from `now`; undefined if invalid. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const wait = /^\d{1,10}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isNaN(wait) ? undefined : Math.min(MAX_RETRY_AFTER, Math.max(0, wait));
}
