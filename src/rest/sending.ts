import { setImmediate as nextTick } from 'node:timers/promises';
import {
  addEndpoint,
  type Endpoint,
  HttpProblem,
  parseJsonBody,
  parseJsonText,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { refuseCrossSite } from '../access/cors.ts';
import { type Guards, guarded } from '../access/guarded.ts';
import { isRecord } from '../core/json.ts';
import { isThenable } from '../core/scheduler.ts';
import { traceOfHeaders } from '../core/trace.ts';
import { parseIsoTime } from '../inbox/delivery.ts';
import type { SendingApi } from '../sending/api.ts';
import { TENANT } from '../sending/endpoints.ts';
import { EventRefusedError } from '../sending/event-types.ts';
import { EVENT_TYPE, MAX_TYPE } from '../sending/filters.ts';
import { EventKeyReusedError, type NewEvent, requestDigest } from '../sending/publisher.ts';
import type { Sending } from '../sending/sending.ts';
import { idempotencyKey, json, keyOfCaller } from './messages.ts';

/** Largest body of a request with one event, and of one with many, in bytes. */
const BODY_LIMIT = 4 * 1024 * 1024;
/** Largest data of an event in bytes, as JSON. */
const MAX_DATA = 256 * 1024;
/** Most events of a request. */
const MAX_EVENTS = 1_000;
/** Other requests have a turn after so much time of checks, in milliseconds. */
const TURN = 10;
/** Faults of a request that are told. */
const MAX_FAULTS = 50;
/** Largest body of a request to `/webhooks`. */
const API_LIMIT = 256 * 1024;
const MEMBERS = ['tenant', 'type', 'data', 'channels', 'runAt', 'key'];
const KEY = /^[\x21-\x7e]{1,255}$/;

/** What sends events to the endpoints of customers, with its API. */
export interface ServedSending {
  readonly sending: Sending;
  readonly api: SendingApi;
}

interface Fault {
  readonly pointer: string;
  readonly detail: string;
}

/** Adds the paths that publish events, and those of tenants, endpoints and event types. */
export function addSendingRoutes(
  app: FastifyInstance,
  { sending, api }: ServedSending,
  guards: Guards,
): void {
  const publishing: Endpoint = guarded(
    {
      bodyLimit: BODY_LIMIT,
      authorize: (ctx) => refuseCrossSite(ctx, guards.cors),
      handle: (ctx) => publish(sending, ctx),
    },
    guards,
    (policy, ctx) => policy.authorize(ctx, 'write', 'events'),
  );
  for (const slash of ['', '/']) addEndpoint(app, 'POST', `/events${slash}`, publishing);
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    const need = method === 'GET' ? 'read' : 'write';
    const endpoint: Endpoint = {
      bodyLimit: method === 'GET' ? 0 : API_LIMIT,
      authorize: (ctx) => refuseCrossSite(ctx, guards.cors),
      handle: (ctx) => api.handle(ctx, ctx.param),
    };
    const behind = guarded(endpoint, guards, (policy, ctx) => policy.authorize(ctx, need, 'webhooks'));
    addEndpoint(app, method, '/webhooks/*', behind, { fast: false });
  }
}

/** POST /events with one event, or with one on each line. Throws HttpProblem. */
async function publish(sending: Sending, ctx: RequestContext): Promise<Reply> {
  if (/ndjson|jsonl/i.test(ctx.contentType ?? '')) return publishAll(sending, ctx);
  const faults: Fault[] = [];
  const header = idempotencyKey(ctx);
  const event = readEvent(parseJsonBody(ctx.body), ctx, '#', faults);
  if (event === undefined) throw invalidEvent(faults);
  const given = withDigest({ ...event, key: header ?? event.key });
  const { isRepeat, ...published } = await sending.publish(given).catch((error: unknown) => {
    throw refusalOf(error, '#');
  });
  return json(JSON.stringify(published), isRepeat ? 200 : 202);
}

async function publishAll(sending: Sending, ctx: RequestContext): Promise<Reply> {
  const lines = ctx.body.toString().split('\n');
  const faults: Fault[] = [];
  const events: { readonly at: string; readonly event: NewEvent }[] = [];
  for (const [i, line] of lines.entries()) {
    if (line.trim() === '') continue;
    if (events.length === MAX_EVENTS || faults.length >= MAX_FAULTS) break;
    const at = `#/${i}`;
    try {
      const event = readEvent(parseJsonText(line, true), ctx, at, faults);
      if (event !== undefined) events.push({ at, event });
    } catch (error) {
      if (!(error instanceof HttpProblem)) throw error;
      faults.push({ pointer: at, detail: error.message });
    }
  }
  if (lines.filter((line) => line.trim() !== '').length > MAX_EVENTS)
    throw new HttpProblem(400, 'LIMIT_EXCEEDED', `A request takes at most ${MAX_EVENTS} events (events)`);
  if (faults.length > 0) throw invalidEvent(faults);
  // Nothing is stored unless all data have the form of their types, and each key has one event.
  let turnEnds = performance.now() + TURN;
  const keyed = new Map<string, string | undefined>();
  const given: NewEvent[] = [];
  for (const { at, event } of events) {
    const { tenant, type, data, key, digest } = withDigest(event);
    given.push({ ...event, digest });
    try {
      const checking = sending.types.check(type, data);
      if (isThenable(checking)) await checking;
      const name = `${tenant} ${key}`;
      if (key !== null && (keyed.get(name) ?? digest) !== digest) throw new EventKeyReusedError();
      if (key !== null) keyed.set(name, digest);
    } catch (error) {
      throw refusalOf(error, at);
    }
    if (performance.now() < turnEnds) continue;
    await nextTick();
    turnEnds = performance.now() + TURN;
  }
  const refused: Fault[] = [];
  const published: object[] = [];
  for (const [i, each] of (await sending.publishAll(given)).entries()) {
    if (each instanceof EventKeyReusedError)
      refused.push({ pointer: `${events[i]?.at}/key`, detail: each.message });
    else if (each instanceof Error) throw each;
    else published.push({ id: each.id, endpoints: each.endpoints });
  }
  if (refused.length > 0)
    throw keyReused('Some keys were used before with other events; the other lines are stored', refused);
  return json(JSON.stringify({ events: published }), 202);
}

function keyReused(message: string, faults?: readonly Fault[]): HttpProblem {
  const reasons = faults?.slice(0, MAX_FAULTS);
  return new HttpProblem(422, 'IDEMPOTENCY_KEY_REUSED', message, reasons && { reasons });
}

/** An event with a key is compared with others that have it. */
function withDigest(event: NewEvent): NewEvent {
  return event.key === null ? event : { ...event, digest: requestDigest(event) };
}

/** The refusal of the event at `at` that an error stands for; other errors stay. */
function refusalOf(error: unknown, at: string): unknown {
  if (error instanceof EventKeyReusedError) {
    const message = 'The Idempotency-Key was used before with another event';
    // The key of a single event is usually in the header.
    return keyReused(message, at === '#' ? undefined : [{ pointer: `${at}/key`, detail: error.message }]);
  }
  if (!(error instanceof EventRefusedError)) return error;
  const reasons = error.faults.map(({ pointer, detail }) => ({ pointer: `${at}/data${pointer}`, detail }));
  return new HttpProblem(400, 'EVENT_REFUSED', 'The data do not fit the schema of the event type', {
    cause: error,
    reasons,
  });
}

function invalidEvent(faults: readonly Fault[]): HttpProblem {
  return new HttpProblem(400, 'INVALID_EVENT', 'The event cannot be read', {
    reasons: faults.slice(0, MAX_FAULTS),
  });
}

/** Reads an event at `at`, a JSON pointer. Appends its faults to `faults`; the result is then undefined. */
function readEvent(given: unknown, ctx: RequestContext, at: string, faults: Fault[]): NewEvent | undefined {
  const count = faults.length;
  const fault = (member: string, detail: string) => faults.push({ pointer: `${at}${member}`, detail });
  if (!isRecord(given)) {
    fault('', 'an event is an object with tenant, type and data');
    return undefined;
  }
  const { tenant, type, data, channels, runAt, key } = given;
  for (const name of Object.keys(given)) {
    if (!MEMBERS.includes(name)) fault(`/${name}`, `is not known; an event has ${MEMBERS.join(', ')}`);
  }
  if (typeof tenant !== 'string' || !TENANT.test(tenant))
    fault('/tenant', 'must be the name of a tenant: at most 64 letters, digits, "_", "-" and "."');
  if (typeof type !== 'string' || type.length > MAX_TYPE || !EVENT_TYPE.test(type))
    fault('/type', 'must be an event type such as "invoice.paid"');
  const json = JSON.stringify(data) as string | undefined;
  if (json === undefined) fault('/data', 'is missing');
  else if (Buffer.byteLength(json) > MAX_DATA) fault('/data', `has more than ${MAX_DATA} bytes`);
  const isChannels =
    Array.isArray(channels) &&
    channels.length <= 20 &&
    channels.every((each) => typeof each === 'string' && each.length > 0 && each.length <= 128);
  if (channels !== undefined && !isChannels) fault('/channels', 'must be an array of at most 20 texts');
  const time = typeof runAt === 'string' ? parseIsoTime(runAt, 'Z') : undefined;
  if (runAt !== undefined && time === undefined)
    fault('/runAt', 'must be a time such as 2026-01-31T14:00:00Z');
  if (key !== undefined && (typeof key !== 'string' || !KEY.test(key)))
    fault('/key', 'takes 1 to 255 visible ASCII characters, a UUID for example');
  if (faults.length > count) return undefined;
  return {
    tenant: String(tenant),
    type: String(type),
    data,
    json,
    channels: channels as readonly string[] | undefined,
    runAt: time,
    key: typeof key === 'string' ? keyOfCaller(ctx.caller, key) : null,
    trace: traceOfHeaders(ctx),
  };
}
