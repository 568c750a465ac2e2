import type { IncomingHttpHeaders } from 'node:http';
import {
  addEndpoint,
  BodyBudget,
  type Endpoint,
  type ErrorFormat,
  HttpProblem,
  LIMITS,
  parseJsonBody,
  type Reply,
  type RequestContext,
  readRawBodies,
  refuseUnrouted,
} from '@portico/transport';
import type { FastifyPluginAsync } from 'fastify';
import { refuseCrossSiteForm } from '../access/cors.ts';
import { formatPointer } from '../core/json.ts';
import { secretMatcher } from '../core/passwords.ts';
import { whenReady } from '../core/scheduler.ts';
import { traceOfHeaders } from '../core/trace.ts';
import { DeliveryIds, type NewDelivery } from '../inbox/delivery.ts';
import { keptHeaders, parseDeliveryBody } from '../inbox/delivery-body.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { Work } from '../inbox/work.ts';
import type { SchemeName } from '../signatures/config.ts';
import type { AnyScheme, Refusal } from '../signatures/schemes.ts';
import { readDelivery, type SourceSettings } from '../signatures/sources.ts';

/** Options of the receiver. */
interface ReceiverOptions extends Pick<ReceiverParts, 'inbox' | 'work' | 'refused'> {
  /** Returns the trace of a request; by default the one in its headers. */
  readonly traceOf?: ReceiverParts['traceOf'] | undefined;
  /** The secrets accepted in x-webhook-token; an empty list leaves the door open. Called for each request. */
  secrets(): readonly string[];
  /** The headers that deliveries at /webhook keep, in lower case; default none. */
  readonly headers?: readonly string[];
  /** Signed sources, each at /webhook/<name>. */
  readonly sources: readonly SourceSettings[];
  /** Largest body in bytes, for sources without their own limit. A larger one gets a 413. */
  readonly maxBodyBytes: number;
  /** Bytes that all bodies together may hold, unless the listener has a budget for them. */
  readonly maxBytesInFlight: number;
}

/** The path of the receiver. */
export const RECEIVER_PATH = '/webhook';

/** The body limit of a source: its own or the door's, bounded by the bytes that may be in flight. */
function bodyLimitOf(source: SourceSettings, { maxBodyBytes, maxBytesInFlight }: ReceiverOptions): number {
  const limit = source.maxBodyBytes ?? Math.max(maxBodyBytes, largestBody(source.scheme));
  return Math.min(limit, Math.max(maxBodyBytes, Math.floor(maxBytesInFlight * LIMITS.largeBodies)));
}

/** The largest body that a scheme's usual sender sends, in bytes; 0 if unknown. */
function largestBody(scheme: SchemeName): number {
  // GitHub caps its payloads at 25 MB (docs.github.com, "Webhook events and payloads").
  return scheme === 'github' ? 25 * 1024 * 1024 : 0;
}

/**
 * Receives and stores deliveries (CONTRACT.md#webhook-receipt). Register it with the prefix RECEIVER_PATH.
 */
export const receiver: FastifyPluginAsync<ReceiverOptions> = async (app, given) => {
  const { secrets, headers, sources, maxBodyBytes, maxBytesInFlight } = given;
  const parts: ReceiverParts = {
    ...given,
    traceOf: given.traceOf ?? traceOfHeaders,
    ids: new DeliveryIds(),
    bodyLimit: maxBodyBytes,
  };
  readRawBodies(app, BodyBudget.of(app, { max: maxBytesInFlight, usual: maxBodyBytes }));
  addEndpoint(app, 'POST', '', deliveryEndpoint(tokenGuard(secrets), parts, headers));
  for (const source of sources) {
    const bodyLimit = bodyLimitOf(source, given);
    addEndpoint(
      app,
      'POST',
      `/${source.name}`,
      sourceEndpoint(source, { ...parts, bodyLimit, isSilent: source.scheme === 'discord' }),
    );
  }
  // Other paths belong to the application.
  const paths = ['', ...sources.map(({ name }) => `/${name}`)];
  refuseUnrouted(app, webhookErrors, Object.fromEntries(paths.map((path) => [path, 'POST'])));
};

/** State that the receiver's endpoints share. */
interface ReceiverParts {
  readonly inbox: Pick<Inbox, 'idOf'>;
  /** Stores the deliveries. */
  readonly work: Pick<Work, 'store'>;
  readonly ids: DeliveryIds;
  /** Largest body in bytes. */
  readonly bodyLimit: number;
  /** Whether deliveries are acknowledged without a body. */
  readonly isSilent?: boolean;
  /** Returns the trace of a request in its stored form; null without one. */
  traceOf(ctx: Pick<RequestContext, 'headers'>): string | null;
  /** Called with the reason when a request of a source is refused. */
  refused(source: string, reason: Refusal): void;
}

/** The content of a request, read by the rules of its source. */
type Received = Omit<NewDelivery, 'id' | 'receivedAt' | 'jobs' | 'trace'>;

/** The acknowledgement of a delivery, with its id. */
const accepted = (id: string | undefined, isSilent = false): Reply => ({
  ...(isSilent ? SILENT : { status: 200, type: TEXT_TYPE, body: ACKNOWLEDGED }),
  headers: id === undefined ? undefined : { 'x-delivery-id': id },
});

/** The acknowledgement that Discord asks for. */
const SILENT = { status: 204, type: '', body: '' } as const;

/**
 * Stores a delivery and then acknowledges it (CONTRACT.md#webhook-receipt). A duplicate is acknowledged with
 * the id of the first delivery, unless that was removed. `parsed` is the parsed body.
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
  return parts.work.store(facts, parsed).then((appended) => {
    const { source, dedupKey } = received;
    if (appended === 'stored' || dedupKey === null) return accepted(id, parts.isSilent);
    return whenReady(parts.inbox.idOf(source, dedupKey), (known) => accepted(known, parts.isSilent));
  });
}

/**
 * The endpoint of /webhook (CONTRACT.md#webhook-receipt); `names` are the headers that its deliveries keep.
 */
function deliveryEndpoint(guard: TokenGuard, parts: ReceiverParts, names: readonly string[] = []): Endpoint {
  return {
    bodyLimit: parts.bodyLimit,
    authorize(ctx) {
      // A form cannot send the token, so this check is needed only without one.
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

/** The `event` of a body (CONTRACT.md#webhook-body); null if it is missing or not a string. */
function eventOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const { event } = body as { readonly event?: unknown };
  return typeof event === 'string' ? event : null;
}

/**
 * The key by which a sender marks repetitions of a delivery (Standard Webhooks,
 * draft-ietf-httpapi-idempotency-key-header). The database stores a long key as its digest.
 */
function dedupKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['webhook-id'] ?? headers['idempotency-key'];
  return typeof key === 'string' && key !== '' ? key : null;
}

type BodyCheck = Exclude<ReturnType<ReturnType<AnyScheme['verifier']>>, Refusal>;

/**
 * The endpoint of a signed source. It checks the headers before it reads the body, then the signature over
 * the received bytes, and only then parses the body. Throws UnusableSecretError.
 */
function sourceEndpoint(source: SourceSettings, parts: ReceiverParts): Endpoint {
  const { name } = source;
  const verifier = source.signature.verifier(source.secrets);
  const usualPointer = formatPointer(source.data);
  const refused = (reason: Refusal): HttpProblem => {
    parts.refused(name, reason);
    return new HttpProblem(401, 'REFUSED', 'Unauthorized', {
      headers: { connection: 'close' },
      // For the log; the sender is not told the reason.
      cause: new Error(`source ${name}: ${reason}`),
    });
  };

  const accept = (ctx: RequestContext): Reply | Promise<Reply> => {
    const { headers, contentType, body } = ctx;
    const parsed = parseDeliveryBody({ source: name, contentType, body });
    const read = readDelivery(source, headers, parsed);
    if (read.kind === 'challenge') {
      if (read.answer === '') return SILENT;
      return { status: 200, type: read.isJson === true ? 'application/json' : TEXT_TYPE, body: read.answer };
    }
    const { event, senderEvent, dedupKey } = read;
    const dataPointer = read.pointer === source.data ? usualPointer : formatPointer(read.pointer);
    const kept = keptHeaders(source.headers, headers);
    const names = { source: name, event, senderEvent };
    const received = { ...names, dataPointer, dedupKey, contentType, headers: kept, body };
    return acceptDelivery(parts, ctx, received, parsed);
  };

  /** The body check of each request whose headers passed. */
  const checks = new WeakMap<RequestContext, BodyCheck>();

  return {
    bodyLimit: parts.bodyLimit,
    authorize(ctx) {
      const step = verifier(ctx.headers, Date.now(), ctx);
      if (typeof step !== 'function') throw refused(step);
      checks.set(ctx, step);
    },
    handle(ctx) {
      const check = checks.get(ctx);
      const refusal = check === undefined ? 'no-signature' : check(ctx.body);
      return whenReady(refusal, (found) => {
        if (found !== undefined) throw refused(found);
        return accept(ctx);
      });
    },
  };
}

/** Checks the headers of a request; returns whether a token was required. Throws HttpProblem. */
type TokenGuard = (headers: IncomingHttpHeaders) => boolean;

/**
 * Refuses requests whose x-webhook-token is not one of the secrets with 401 (CONTRACT.md#webhook-receipt and
 * #authentication), and closes their connection, because the unread body would be parsed as the next request.
 * Without secrets every request passes. `secrets` is called for each request, so that secrets can change; the
 * matcher is rebuilt only when it returns another list.
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
    // Node decodes headers as Latin-1, but most senders encode a non-ASCII secret as UTF-8.
    if (typeof token === 'string' && (matches(token) || matches(Buffer.from(token, 'latin1').toString())))
      return true;
    throw new HttpProblem(401, 'WRONG_TOKEN', 'Unauthorized', { headers: { connection: 'close' } });
  };
}

/** Every reply of this door is plain text (CONTRACT.md#webhook-receipt). */
export const TEXT_TYPE = 'text/plain; charset=utf-8';

/** The reply to a stored delivery (CONTRACT.md#webhook-receipt). */
export const ACKNOWLEDGED = 'Webhook received';

/** A refusal of this door is its message as plain text. */
export const webhookErrors: ErrorFormat = {
  contentType: TEXT_TYPE,
  body: (problem) => problem.message,
};
