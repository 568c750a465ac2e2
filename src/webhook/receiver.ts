import type { IncomingHttpHeaders } from 'node:http';
import {
  addEndpoint,
  bodyBudgetOf,
  type Endpoint,
  HttpProblem,
  LARGE_SHARE,
  parseJsonBody,
  type Reply,
  type RequestContext,
  readRawBodies,
  refuseUnrouted,
} from '@portico/transport';
import type { FastifyPluginAsync } from 'fastify';
import { secretMatcher } from '../access/passwords.ts';
import { formatPointer } from '../core/json.ts';
import { whenReady } from '../core/maybe-promise.ts';
import { traceOfHeaders } from '../core/trace.ts';
import { refuseCrossSiteForm } from '../http/cross-site.ts';
import { DeliveryIds, keptHeaders, type NewDelivery, parseDeliveryBody } from '../inbox/delivery.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import type { JobPlan } from '../inbox/job-plan.ts';
import type { BodyCheck, Refusal } from '../signatures/schemes.ts';
import { largestBody, readDelivery, type SourceSettings } from '../signatures/sources.ts';
import { ACKNOWLEDGED, TEXT_TYPE, webhookErrors } from './options.ts';

/** What the receiver works with. */
export interface ReceiverOptions extends Pick<ReceiverParts, 'inbox' | 'plan' | 'onAppended' | 'onRefused'> {
  /** Where a request stands in a trace; default as its headers say. */
  readonly traceOf?: ReceiverParts['traceOf'] | undefined;
  /** The shared secrets that are accepted in x-webhook-token; none: not secured. Asked at each request. */
  secrets(): readonly string[];
  /** The headers that deliveries at /webhook itself keep, in lower case; default none. */
  readonly headers?: readonly string[];
  /** Signed sources, each at /webhook/<name>. */
  readonly sources: readonly SourceSettings[];
  /** Largest body in bytes, where a source has no limit of its own. A larger one is a 413. */
  readonly maxBodyBytes: number;
  /** Bytes that all bodies hold at the same time, unless the listener has a budget for them. */
  readonly maxBytesInFlight: number;
}

/** Where deliveries come in. */
export const RECEIVER_PATH = '/webhook';

/** The body limit of a source: its own or the door's, and no more than can ever be under way. */
function bodyLimitOf(source: SourceSettings, { maxBodyBytes, maxBytesInFlight }: ReceiverOptions): number {
  const limit = source.maxBodyBytes ?? Math.max(maxBodyBytes, largestBody(source.scheme));
  return Math.min(limit, Math.max(maxBodyBytes, Math.floor(maxBytesInFlight * LARGE_SHARE)));
}

/** Receives deliveries and stores them (CONTRACT.md#webhook-receipt); registered with RECEIVER_PATH as its prefix. */
export const receiver: FastifyPluginAsync<ReceiverOptions> = async (app, given) => {
  const { secrets, headers, sources, maxBodyBytes, maxBytesInFlight } = given;
  const parts: ReceiverParts = {
    ...given,
    traceOf: given.traceOf ?? traceOfHeaders,
    ids: new DeliveryIds(),
    bodyLimit: maxBodyBytes,
  };
  readRawBodies(app, bodyBudgetOf(app, { max: maxBytesInFlight, usual: maxBodyBytes }));
  addEndpoint(app, 'POST', '', deliveryEndpoint(tokenGuard(secrets), parts, headers));
  for (const source of sources) {
    const bodyLimit = bodyLimitOf(source, given);
    addEndpoint(app, 'POST', `/${source.name}`, sourceEndpoint(source, { ...parts, bodyLimit }));
  }
  // All other paths are the application's own.
  const paths = ['', ...sources.map(({ name }) => `/${name}`)];
  refuseUnrouted(app, webhookErrors, Object.fromEntries(paths.map((path) => [path, 'POST'])));
};

/** What the endpoints of the receiver share. */
interface ReceiverParts {
  readonly inbox: Pick<Inbox, 'append' | 'idOf'>;
  readonly ids: DeliveryIds;
  /** Largest body in bytes. */
  readonly bodyLimit: number;
  /** Where a request stands in a trace, as it is stored; null without one. */
  traceOf(ctx: Pick<RequestContext, 'headers'>): string | null;
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Called with each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Called with the reason of each refusal of a source's request. */
  onRefused(source: string, reason: Refusal): void;
}

/** What a request says, read by the rules of its source. */
type Received = Omit<NewDelivery, 'id' | 'receivedAt' | 'jobs' | 'trace'>;

/** Acknowledges a delivery, and names the stored one. */
const accepted = (id: string | undefined): Reply => ({
  status: 200,
  type: TEXT_TYPE,
  body: ACKNOWLEDGED,
  headers: id === undefined ? undefined : { 'x-delivery-id': id },
});

/**
 * Stores a delivery and only then acknowledges it (CONTRACT.md#webhook-receipt), a duplicate as well: with the id of the first, unless
 * that was removed meanwhile. `parsed` is what its body says.
 */
function acceptDelivery(
  parts: ReceiverParts,
  ctx: Pick<RequestContext, 'headers'>,
  received: Received,
  parsed: unknown,
): Promise<Reply> {
  const receivedAt = Date.now();
  const id = parts.ids.next(receivedAt);
  const facts = { ...received, id, receivedAt, trace: parts.traceOf(ctx) };
  const delivery = { ...facts, jobs: parts.plan(facts, parsed) };
  return parts.inbox.append(delivery).then((appended) => {
    parts.onAppended(delivery, appended);
    const { source, dedupKey } = received;
    if (appended === 'stored' || dedupKey === null) return accepted(id);
    return whenReady(parts.inbox.idOf(source, dedupKey), accepted);
  });
}

/** The endpoint of /webhook itself (CONTRACT.md#webhook-receipt); `names` are the headers that its deliveries keep. */
function deliveryEndpoint(guard: TokenGuard, parts: ReceiverParts, names: readonly string[] = []): Endpoint {
  return {
    bodyLimit: parts.bodyLimit,
    authorize(ctx) {
      // A form cannot send the token.
      if (!guard(ctx.headers)) refuseCrossSiteForm(ctx);
    },
    handle(ctx) {
      const { headers, contentType, body } = ctx;
      const parsed = parseJsonBody(body);
      const event = eventOf(parsed);
      const dedupKey = dedupKeyOf(headers);
      const kept = keptHeaders(names, headers);
      const received = {
        source: '',
        event,
        dataPointer: '/data',
        dedupKey,
        contentType,
        headers: kept,
        body,
      };
      return acceptDelivery(parts, ctx, received, parsed);
    },
  };
}

/** The `event` of a body (CONTRACT.md#webhook-body); null when the body is any other JSON value. */
function eventOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const { event } = body as { readonly event?: unknown };
  return typeof event === 'string' ? event : null;
}

/**
 * A sender that repeats a delivery may say so (Standard Webhooks, draft-ietf-httpapi-idempotency-key-header). The database
 * stores a long key as its digest.
 */
function dedupKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['webhook-id'] ?? headers['idempotency-key'];
  return typeof key === 'string' && key !== '' ? key : null;
}

/**
 * The endpoint of a signed source: it refuses what the headers alone give away before the body is read, checks the
 * signature on the body as it came, and only then parses the body.
 * Throws UnusableSecretError.
 */
function sourceEndpoint(source: SourceSettings, parts: ReceiverParts): Endpoint {
  const { name } = source;
  const verifier = source.signature.verifier(source.secrets);
  const usualPointer = formatPointer(source.data);
  const refused = (reason: Refusal): HttpProblem => {
    parts.onRefused(name, reason);
    return new HttpProblem(401, 'REFUSED', 'Unauthorized', {
      headers: { connection: 'close' },
      // For the log: a sender learns no reason.
      cause: new Error(`source ${name}: ${reason}`),
    });
  };

  /** What checks the body of a request whose headers are in order. */
  const checks = new WeakMap<RequestContext, BodyCheck>();

  return {
    bodyLimit: parts.bodyLimit,
    authorize(ctx) {
      const step = verifier(ctx.headers, Date.now());
      if (typeof step !== 'function') throw refused(step);
      checks.set(ctx, step);
    },
    handle(ctx) {
      const { headers, contentType, body } = ctx;
      const check = checks.get(ctx);
      const refusal = check === undefined ? 'no-signature' : check(body);
      if (refusal !== undefined) throw refused(refusal);
      const parsed = parseDeliveryBody({ source: name, contentType, body });
      const read = readDelivery(source, headers, parsed);
      if (read.kind === 'challenge') return { status: 200, type: TEXT_TYPE, body: read.answer };
      const { event, senderEvent, dedupKey } = read;
      const dataPointer = read.pointer === source.data ? usualPointer : formatPointer(read.pointer);
      const kept = keptHeaders(source.headers, headers);
      const names = { source: name, event, senderEvent };
      const received = { ...names, dataPointer, dedupKey, contentType, headers: kept, body };
      return acceptDelivery(parts, ctx, received, parsed);
    },
  };
}

/** Lets a request with these headers pass, or throws HttpProblem; returns whether a token was needed. */
type TokenGuard = (headers: IncomingHttpHeaders) => boolean;

/**
 * Refuses requests whose x-webhook-token is none of the secrets (CONTRACT.md#webhook-receipt and #authentication) with 401, and closes their
 * connection: the unread body would otherwise be taken for the next request. While there are no secrets the door is
 * not secured and every request passes. `secrets` is asked at each request, so that they can change; what is made of
 * them is kept as long as it gives the same list.
 */
export function tokenGuard(secrets: () => readonly string[]): TokenGuard {
  let known = secrets();
  let matches = secretMatcher(known);
  return (headers) => {
    const now = secrets();
    if (now !== known) {
      matches = secretMatcher(now);
      known = now;
    }
    if (known.length === 0) return false;
    const token = headers['x-webhook-token'];
    // Node reads header bytes as Latin-1; senders write a secret beyond ASCII in UTF-8 as a rule.
    if (typeof token === 'string' && (matches(token) || matches(Buffer.from(token, 'latin1').toString())))
      return true;
    throw new HttpProblem(401, 'WRONG_TOKEN', 'Unauthorized', { headers: { connection: 'close' } });
  };
}
