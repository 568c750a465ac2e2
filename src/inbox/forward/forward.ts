import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
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
import { guardedLookup, isPrivateHost, type Network, PrivateAddressError } from './addresses.ts';
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

/** A request to send. */
interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** The parts of a reply that are used; the rest of its body is discarded. */
interface PostReply {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The first kilobyte of its body; never rejects. */
  readonly excerpt: Promise<string>;
}

/** Maximum size of a reply in bytes; it is drained so that the connection can be reused. */
const MAX_REPLY = 64 * 1024;
/** Maximum time to drain a reply, in milliseconds: the attempt's timeout no longer applies. */
const MAX_REPLY_TIME = 5_000;

/** Sends POST requests over keep-alive connections; redirects are not followed. */
export interface Poster extends Disposable {
  /** Rejects if there is no reply. */
  post(post: Post): Promise<PostReply>;
}

interface PosterOptions {
  readonly network: Network;
  readonly allowPrivate: boolean;
  /** Timeout for the body of a reply in milliseconds. Default: 5,000. */
  readonly replyTime?: number;
  /** Maximum number of idle connections that are kept. Default: no limit but that of each host. */
  readonly maxIdle?: number;
}

/** Loaded for the first https URL: TLS takes 4 MB, and most services forward nothing. */
const loadHttps = () => process.getBuiltinModule('node:https');

/** Creates a poster; it refuses private addresses unless `allowPrivate` is set. */
export function createPoster({
  network,
  allowPrivate,
  replyTime = MAX_REPLY_TIME,
  maxIdle = Number.POSITIVE_INFINITY,
}: PosterOptions): Poster {
  const idle = new Set<Duplex>();
  const http = boundIdle(new HttpAgent({ keepAlive: true }), idle, maxIdle);
  let https: HttpsAgent | undefined;
  const lookup = guardedLookup(network.resolver, allowPrivate);
  return {
    async post({ url, headers, body, signal }) {
      if (!allowPrivate && isPrivateHost(url.hostname)) throw new PrivateAddressError(url.hostname);
      network.allow(url.host);
      const secure = url.protocol === 'https:';
      if (secure) https ??= boundIdle(new (loadHttps().Agent)({ keepAlive: true }), idle, maxIdle);
      const { promise, resolve, reject } = Promise.withResolvers<PostReply>();
      const request = (secure ? loadHttps().request : httpRequest)(url, {
        method: 'POST',
        headers: { ...headers, 'content-length': body.byteLength },
        agent: secure ? https : http,
        signal,
        lookup,
      });
      network.watch(url.host, request, secure ? 'secureConnect' : 'connect');
      request.on('response', (reply) => {
        const excerpt = replyExcerpt(reply);
        drain(reply, replyTime);
        resolve({ status: reply.statusCode ?? 0, retryAfter: reply.headers['retry-after'], excerpt });
      });
      request.on('error', reject);
      request.end(body);
      return promise;
    },
    [Symbol.dispose]() {
      http.destroy();
      https?.destroy();
    },
  };
}

/** Has an agent close a connection that ends a request while `max` others are idle; they are in `idle`. */
function boundIdle<A extends HttpAgent>(agent: A, idle: Set<Duplex>, max: number): A {
  if (max === Number.POSITIVE_INFINITY) return agent;
  const keep = agent.keepSocketAlive.bind(agent);
  const reuse = agent.reuseSocket.bind(agent);
  function forget(this: Duplex): void {
    idle.delete(this);
  }
  // Both are made to be replaced (nodejs.org/api/http.html#agentkeepsocketalivesocket). The type lacks the result.
  agent.keepSocketAlive = (socket) => {
    const isKept: unknown = idle.size < max ? keep(socket) : false;
    if (isKept !== false) {
      idle.add(socket);
      socket.once('close', forget);
    }
    return isKept as undefined;
  };
  agent.reuseSocket = (socket, request) => {
    idle.delete(socket);
    socket.off('close', forget);
    reuse(socket, request);
  };
  return agent;
}

function drain(reply: IncomingMessage, time: number): void {
  const timer = setTimeout(() => reply.destroy(), time).unref();
  reply.on('close', () => clearTimeout(timer));
  let read = 0;
  reply.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > MAX_REPLY) reply.destroy();
  });
  // Errors after the status line do not matter.
  reply.on('error', () => {});
}

const OF_THE_CONNECTION: ReadonlySet<string> = new Set(CONNECTION_HEADERS);

/** The kept headers of a delivery to forward; headers that Portico sets replace them. */
function forwardedHeaders(delivery: Pick<StoredDelivery, 'headers'>): DeliveryHeaders {
  const kept = Object.entries(headersOf(delivery));
  return Object.fromEntries(kept.filter(([name]) => !OF_THE_CONNECTION.has(name)));
}

/** Maximum wait for the excerpt after the status, in milliseconds: recording the outcome waits for it. */
const MAX_EXCERPT_WAIT = 500;

/** Maximum size of the kept part of an answer, in bytes. */
const MAX_ANSWER = 1_024;

/** The first kilobyte of a reply as text, or what arrived before it ended or was too slow. Never rejects. */
function replyExcerpt(reply: IncomingMessage): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  let size = 0;
  const finish = () => {
    clearTimeout(timer);
    reply.off('data', read);
    // `stream` omits an incomplete character at the end.
    resolve(new TextDecoder().decode(Buffer.concat(chunks).subarray(0, MAX_ANSWER), { stream: true }));
  };
  const read = (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= MAX_ANSWER) finish();
  };
  const timer = setTimeout(finish, MAX_EXCERPT_WAIT);
  reply.on('data', read);
  reply.once('close', finish);
  return promise;
}

/** Maximum wait that a receiver can request, in milliseconds. */
const MAX_RETRY_AFTER = 24 * 60 * 60 * 1_000;

/** Parses Retry-After (RFC 9110 10.2.3) to milliseconds from `now`; undefined if invalid. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const wait = /^\d{1,10}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isNaN(wait) ? undefined : Math.min(MAX_RETRY_AFTER, Math.max(0, wait));
}
