import { setImmediate as nextTick } from 'node:timers/promises';
import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { didYouMean } from '../../core/text.ts';
import { requestFields } from '../../core/trace.ts';
import {
  ACTIONS,
  type ActionName,
  DELIVERY_STATUSES,
  type Deliveries,
  type DeliverySummary,
  deliveryPages,
  detailJson,
  LIST_FIELDS,
  REFUSALS,
  readListQuery,
  summaryJson,
} from '../../inbox/operations.ts';
import { COMMON_HEADERS, jsonReply, jsonTextReply, NO_CONTENT } from '../management-errors.ts';
import { maskText } from '../masking.ts';
import type { ManagementEndpoint } from '../operations.ts';
import type { DoorOptions } from '../options.ts';

/** Maximum pages of the log that one request searches; the client continues with `next`. */
const MAX_PAGES = 100;
/** Maximum characters of event names in a list, which ends early there, because senders choose the names. */
const MAX_NAMES = 256 * 1024;
/** Maximum size of a body in a reply, in bytes; the command line shows all of it. */
const MAX_BODY = 64 * 1024;

/** The deliveries endpoint: lists, shows and, with unrestricted access, replays and discards them. */
export function deliveriesEndpoint(
  deliveries: Deliveries,
  { showDetails, secrets }: Pick<DoorOptions, 'showDetails' | 'secrets'>,
): ManagementEndpoint {
  const { log } = deliveries;
  // Values are shown here: only authorised requests pass the guard, and without users every request is
  // authorised.
  const mask = (text: string) => maskText(text, secrets);
  const view = { shown: showDetails !== 'never', maxBodyBytes: MAX_BODY, mask };

  async function list(ctx: RequestContext): Promise<Reply> {
    const { filter, ...range } = readQuery(ctx.query);
    const items: DeliverySummary[] = [];
    let next: number | undefined;
    let length = 0;
    for await (const page of deliveryPages(log, filter, { ...range, pages: MAX_PAGES })) {
      items.push(...page.items);
      next = page.next;
      length += page.items.reduce((sum, { event }) => sum + (event?.length ?? 0), 0);
      if (length >= MAX_NAMES) break;
    }
    return jsonReply(ctx, { items: items.map((item) => summaryJson(item, view)), next: next ?? null });
  }

  /** Counts as many windows as a list searches. A status in the filter is left out: every status is counted. */
  async function count(ctx: RequestContext): Promise<Reply> {
    const { filter, cursor } = readQuery(ctx.query);
    const { status: _, ...others } = filter;
    const counts = Object.fromEntries(DELIVERY_STATUSES.map((status) => [status, 0]));
    let next = cursor !== undefined && 'before' in cursor ? cursor.before : undefined;
    for (let window = 0; window < MAX_PAGES; window++) {
      const counted = await log.count(others, next);
      for (const [status, found] of Object.entries(counted.counts))
        counts[status] = (counts[status] ?? 0) + found;
      next = counted.next;
      if (next === undefined) break;
      await nextTick();
    }
    const total = Object.values(counts).reduce((sum, found) => sum + found, 0);
    return jsonReply(ctx, { total, counts, next: next ?? null });
  }

  async function failing(ctx: RequestContext): Promise<Reply> {
    const { dead, targets } = await log.failing();
    const shown = targets.map(({ lastDeadAt, error, ...target }) => ({
      ...target,
      lastDeadAt: lastDeadAt === null ? null : new Date(lastDeadAt).toISOString(),
      ...(view.shown && { error: error && mask(error) }),
    }));
    return jsonReply(ctx, { dead, targets: shown });
  }

  async function show(ctx: RequestContext): Promise<Reply> {
    const found = await log.find(ctx.param);
    if (found === undefined) throw NO_DELIVERY;
    if (ctx.query.body === 'raw' && view.shown) {
      const { body } = found;
      const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
      return { status: 200, type: 'application/octet-stream', body: bytes, headers: COMMON_HEADERS };
    }
    // Base64 keeps what JSON would lose: the spelling of numbers, the order of members, white space.
    const raw = ctx.query.body === 'base64';
    return jsonTextReply(ctx, detailJson(found, { ...view, raw }));
  }

  async function act(ctx: RequestContext, body: unknown): Promise<Reply> {
    const { param: id } = ctx;
    const result = await ACTIONS[readAction(body)].act(deliveries, id, Date.now());
    if (result === 'not-found') throw NO_DELIVERY;
    if (result !== 'replayed' && result !== 'discarded') throw CONFLICTS[result];
    ctx.log.info({ ...requestFields(ctx), delivery: id }, `delivery ${result} on request`);
    return NO_CONTENT;
  }

  return {
    id: 'deliveries',
    about: 'The webhook deliveries and their status (?status=dead&since=2h).',
    ownAccess: 'read-only',
    routes: () => ({
      '/deliveries': { get: list },
      '/deliveries/counts': { get: count },
      '/deliveries/failing': { get: failing },
      '/deliveries/{id}': { get: show, post: act },
    }),
  };
}

const NO_DELIVERY = new HttpProblem(404, 'NO_DELIVERY', REFUSALS['not-found']);
const CONFLICTS = {
  open: new HttpProblem(409, 'DELIVERY_OPEN', REFUSALS.open),
  'no-handler': new HttpProblem(409, 'NO_HANDLER', REFUSALS['no-handler']),
  settled: new HttpProblem(409, 'DELIVERY_SETTLED', REFUSALS.settled),
} as const;

function readAction(body: unknown): ActionName {
  const members = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const [[name, action] = []] = members;
  if (members.length === 1 && name === 'action' && (action === 'replay' || action === 'discard'))
    return action;
  throw new HttpProblem(
    400,
    'DELIVERY_ACTION',
    'The body must be {"action":"replay"} or {"action":"discard"}',
  );
}

const LIMITS = { limit: 100, max: 1_000 } as const;

/** Parses the query of a list of deliveries. Throws an HttpProblem with status 400 that names all errors. */
function readQuery(query: Readonly<Record<string, unknown>>) {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (!LIST_FIELDS.some((field) => field === name)) {
      problems.push(
        `There is no such parameter${didYouMean(name, LIST_FIELDS) || `; there are ${LIST_FIELDS.join(', ')}`}`,
      );
    } else if (typeof value !== 'string') problems.push(`${name} is given more than once`);
  }
  const texts = {
    text: (field: (typeof LIST_FIELDS)[number]) => {
      const value = query[field];
      return typeof value === 'string' ? value : undefined;
    },
    name: (field: string) => field,
    problems,
  };
  const read = readListQuery(texts, Date.now(), LIMITS);
  if (problems.length > 0) throw new HttpProblem(400, 'DELIVERY_QUERY', problems.join('; '));
  return read;
}
