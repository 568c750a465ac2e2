import * as v from 'valibot';
import type { TransformData } from '../inbox/config.ts';
import { rateField } from '../inbox/config.ts';
import type { DeliveryTransform } from '../inbox/delivery.ts';
import { AttemptError, type Target, UncountedError } from '../inbox/dispatch/target.ts';
import { forwardTarget } from '../inbox/forward/forward.ts';
import type { Poster } from '../inbox/forward/poster.ts';
import type { Signer } from '../signatures/schemes.ts';
import { standard } from '../signatures/standard.ts';
import { EndpointBook } from './endpoint-book.ts';
import { validSecrets } from './endpoints.ts';
import { EndpointLanes, endpointOfTarget } from './lanes.ts';
import type { Disabled, SendingStore, StoredEndpoint } from './store.ts';

/** The name of the target that all endpoints share. */
const ENDPOINTS_TARGET = 'endpoints';

/** How events are signed, by Standard Webhooks. */
const SCHEME = standard({ headerPrefix: 'webhook', tolerance: 0 });

/** How events are sent. Times are in milliseconds. */
export interface SendingLimits {
  /** Attempts before an event is given up for an endpoint. */
  readonly attempts: number;
  readonly timeout: number;
  /** The longest wait before the second attempt; it doubles with each attempt, up to `maxBackoff`. */
  readonly backoff: number;
  readonly maxBackoff: number;
  /** Attempts of this process at a time. */
  readonly concurrency: number;
  readonly concurrencyPerEndpoint: number;
  readonly concurrencyPerTenant: number;
  /** An endpoint that has failed for so long is disabled. */
  readonly disableAfter: number;
  readonly keptAttempts: number;
  /** Largest body of a transformed event in bytes. */
  readonly maxBodyBytes: number;
}

interface EndpointTargetOptions {
  readonly store: SendingStore;
  readonly poster: Poster;
  readonly limits: SendingLimits;
  /** The transformations of the configuration, by name. */
  readonly transforms: ReadonlyMap<string, DeliveryTransform | TransformData>;
  /** Called when an endpoint has to be disabled: it answered 410, or has failed for too long. */
  onDisable(endpoint: StoredEndpoint, why: Exclude<Disabled, 'manual'>): Promise<void>;
  onError(error: unknown): void;
}

/** The target of all endpoints, with what changes of them must tell it. */
export interface EndpointTarget {
  readonly target: Target;
  readonly lanes: EndpointLanes;
  /** Forgets an endpoint that this process has changed. */
  forget(id: string): void;
}

/** Creates the target that sends events to endpoints. */
export function endpointTarget(options: EndpointTargetOptions): EndpointTarget {
  const { store, limits, onDisable, onError } = options;
  const book = new EndpointBook(store, (endpoint) => senderOf(endpoint, options));
  const lanes = new EndpointLanes({
    perEndpoint: limits.concurrencyPerEndpoint,
    perTenant: limits.concurrencyPerTenant,
    failing: Math.max(1, Math.floor(limits.concurrency / 2)),
    rateOf: (target) => book.peek(endpointOfTarget(target).id)?.made.rateLimit,
  });
  /** The endpoints to record, by whether they fail or work again. */
  const notes = new Map<string, boolean>();
  let isNoting = false;

  function note({ id, failingSince }: StoredEndpoint, isFailing: boolean): void {
    if ((failingSince !== null) === isFailing) return;
    notes.set(id, isFailing);
    if (!isNoting) void writeNotes();
  }

  /** Records what has gathered while the notes before were written: many endpoints may fail at the same time. */
  async function writeNotes(): Promise<void> {
    isNoting = true;
    try {
      while (notes.size > 0) {
        const gathered = [...notes];
        notes.clear();
        const failing = gathered.filter(([, isFailing]) => isFailing).map(([id]) => id);
        const working = gathered.filter(([, isFailing]) => !isFailing).map(([id]) => id);
        if (failing.length > 0) await store.noteFailing(failing, Date.now());
        if (working.length > 0) await store.noteFailing(working, null);
        for (const [id] of gathered) book.forget(id);
      }
    } catch (error) {
      // The next attempts note it again.
      onError(error);
    } finally {
      isNoting = false;
    }
  }

  async function failed(endpoint: StoredEndpoint, status: number): Promise<void> {
    const { failingSince } = endpoint;
    const isTooLong = failingSince !== null && Date.now() - failingSince >= limits.disableAfter;
    if (status !== 410 && !isTooLong) return note(endpoint, true);
    try {
      await onDisable(endpoint, status === 410 ? 'gone' : 'failing');
    } catch (error) {
      onError(error);
    } finally {
      book.forget(endpoint.id);
    }
  }

  const target: Target = {
    name: ENDPOINTS_TARGET,
    concurrency: limits.concurrency,
    timeout: limits.timeout,
    maxAttempts: limits.attempts,
    keptAttempts: limits.keptAttempts,
    backoff: { base: limits.backoff, cap: limits.maxBackoff },
    group: lanes,
    async run(job, signal, answered) {
      const { id } = endpointOfTarget(job.target);
      const isCounted = book.peek(id) !== undefined;
      let entry = await book.get(id);
      if (entry !== undefined && entry.endpoint.disabled !== null) {
        // Another process may have enabled it before the event was stored.
        book.forget(id);
        entry = await book.get(id);
      }
      if (entry === undefined || entry.endpoint.disabled !== null) {
        // A circuit would keep the other jobs.
        lanes.skip(job.target);
        const why =
          entry === undefined
            ? 'the endpoint was removed'
            : `the endpoint is disabled (${entry.endpoint.disabled})`;
        throw new AttemptError(why, 'never');
      }
      const { endpoint, made } = entry;
      // The rate was unknown when the attempt began.
      if (!isCounted) made.rateLimit?.take(1);
      let status = 0;
      try {
        await made.run(job, signal, (answer) => {
          ({ status } = answer);
          answered(answer);
        });
        note(endpoint, false);
      } catch (error) {
        // A stop and a lost lease say nothing about the endpoint.
        const isOwn =
          error instanceof UncountedError || (signal.aborted && !(signal.reason instanceof AttemptError));
        if (!isOwn) void failed(endpoint, status);
        throw error;
      }
    },
  };
  return { target, lanes, forget: (id) => book.forget(id) };
}

/** Sends events to one endpoint, signed with the secrets that are valid when it is read. */
function senderOf(
  { id, settings, secrets }: StoredEndpoint,
  { poster, limits, transforms, onError }: EndpointTargetOptions,
): Target {
  const { url, headers, transform: name, rate } = settings;
  const transform = name === undefined ? undefined : transforms.get(name);
  let signer: { readonly sign: Signer; readonly until: number } | undefined;
  const sign: Signer = (request) => {
    const now = Date.now();
    // The previous secrets of a rotation end while the endpoint is kept.
    if (signer === undefined || signer.until <= now) {
      const valid = validSecrets(secrets, now);
      const until = Math.min(...valid.map((each) => each.until ?? Number.POSITIVE_INFINITY));
      signer = { sign: SCHEME.signer(valid.map(({ secret }) => secret)), until };
    }
    return signer.sign(request);
  };
  const target = forwardTarget(
    {
      name: id,
      url: new URL(url),
      secrets: [],
      allowPrivate: false,
      ...(rate !== undefined && { rate: v.parse(rateField, rate) }),
      ...(transform !== undefined && { transform }),
    },
    {
      concurrency: limits.concurrencyPerEndpoint,
      timeout: limits.timeout,
      maxAttempts: limits.attempts,
      backoff: { base: limits.backoff, cap: limits.maxBackoff },
    },
    sign,
    headers === undefined
      ? poster
      : {
          post: (post) => poster.post({ ...post, headers: { ...headers, ...post.headers } }),
          [Symbol.dispose]() {},
        },
    { maxBodyBytes: limits.maxBodyBytes },
  );
  if (name === undefined || transform !== undefined) return target;
  return {
    ...target,
    run() {
      const error = new AttemptError(`the configuration has no transformation ${name}`);
      onError(error);
      throw error;
    },
  };
}
