import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { didYouMean } from '../../core/text.ts';
import { requestFields } from '../../core/trace.ts';
import { attemptJson, endpointJson, iso, isoOrNull } from '../../sending/api-json.ts';
import { enabledAs } from '../../sending/endpoints.ts';
import { endpointTargetName } from '../../sending/lanes.ts';
import {
  ENDPOINT_STATES,
  endpointState,
  type RecentEvents,
  type StoredEndpoint,
} from '../../sending/store.ts';
import { jsonReply, NO_CONTENT } from '../management-errors.ts';
import { maskText } from '../masking.ts';
import type { ManagementEndpoint } from '../operations.ts';
import type { DoorOptions, WebhookEndpoints } from '../options.ts';

/** Rows of a page; for each of them a statement reads its recent events. */
const PAGE = { usual: 25, max: 100 } as const;
/** Characters of an error in a list. */
const MAX_ERROR = 300;
const FIELDS = ['state', 'tenant', 'after', 'limit'] as const;
/** What an operator can do with an endpoint. */
const ACTIONS = ['enable', 'disable', 'portal'] as const;
const OF_TENANT = /^[\w.-]{1,64}$/;

type Action = (typeof ACTIONS)[number];

/**
 * The webhookendpoints endpoint: lists and shows the endpoints of all tenants and, with unrestricted access, enables and
 * disables them. It shows no secrets, and of the headers of an endpoint only the names.
 */
export function webhookEndpoints(
  { sending, portalLink }: WebhookEndpoints,
  { showDetails, secrets }: Pick<DoorOptions, 'showDetails' | 'secrets'>,
): ManagementEndpoint {
  const { store, log } = sending;
  const mask = (text: string) => maskText(text, secrets);
  const maskOrNull = (text: string | null) => text && mask(text);
  const isShown = showDetails !== 'never';

  function endpointView(endpoint: StoredEndpoint) {
    const { url, headers, ...view } = endpointJson(endpoint);
    return {
      ...view,
      url: mask(url),
      ...(headers && { headers: Object.keys(headers) }),
      state: endpointState(endpoint),
    };
  }
  const targetOf = ({ tenant, id }: StoredEndpoint) => endpointTargetName(tenant, id);
  const recentView = ({ lastSuccessAt, lastFailureAt, error, ...counts }: RecentEvents) => ({
    ...counts,
    lastSuccessAt: isoOrNull(lastSuccessAt),
    lastFailureAt: isoOrNull(lastFailureAt),
    ...(isShown && { error: maskOrNull(error)?.slice(0, MAX_ERROR) ?? null }),
  });

  async function list(ctx: RequestContext): Promise<Reply> {
    const { states, tenant, after, limit } = readQuery(ctx.query);
    const found = await store.inStates(states, { tenant, after, limit: limit + 1 });
    const items: unknown[] = [];
    for (const endpoint of found.slice(0, limit)) {
      items.push({ ...endpointView(endpoint), recent: recentView(await log.recent(targetOf(endpoint))) });
    }
    const last = found.length > limit ? found[limit - 1] : undefined;
    return jsonReply(ctx, { items, next: last === undefined ? null : positionOf(last) });
  }

  async function count(ctx: RequestContext): Promise<Reply> {
    return jsonReply(ctx, { counts: await store.countStates(readQuery(ctx.query).tenant) });
  }

  async function find(id: string): Promise<StoredEndpoint> {
    const [endpoint] = await store.endpointsOf([id]);
    if (endpoint === undefined) throw NO_ENDPOINT;
    return endpoint;
  }

  async function show(ctx: RequestContext): Promise<Reply> {
    const endpoint = await find(ctx.param);
    const target = targetOf(endpoint);
    const attempts = await log.lastAttempts(target);
    const { counted, byStatus, hours } = await log.stats(target);
    return jsonReply(ctx, {
      ...endpointView(endpoint),
      recent: recentView(await log.recent(target)),
      stats: { counted, byStatus, hours: hours.map(({ at, ...each }) => ({ at: iso(at), ...each })) },
      attempts: attempts.map((attempt) => {
        const { answer, error, ...view } = attemptJson(attempt);
        const { event, type, process } = attempt;
        const details = isShown && { answer: maskOrNull(answer), error: maskOrNull(error) };
        return { event, type, ...view, process, ...details };
      }),
      hasPortal: portalLink !== undefined,
    });
  }

  async function act(ctx: RequestContext, body: unknown): Promise<Reply> {
    const action = readAction(body);
    const endpoint = await find(ctx.param);
    const { id, tenant, settings, secrets: kept } = endpoint;
    if (action === 'portal') {
      if (portalLink === undefined) throw NO_PORTAL;
      const { url } = await portalLink(tenant);
      ctx.log.info({ ...requestFields(ctx), tenant }, 'portal opened on request');
      return jsonReply(ctx, { url });
    }
    const changed = await sending.change(endpoint, {
      settings,
      secrets: kept,
      ...enabledAs(endpoint, action === 'enable'),
    });
    if (changed === undefined) throw CHANGED;
    ctx.log.info({ ...requestFields(ctx), tenant, endpoint: id }, `endpoint ${action}d on request`);
    return NO_CONTENT;
  }

  return {
    id: 'webhookendpoints',
    about: "The customers' endpoints of webhooks and their state (?state=disabled).",
    ownAccess: 'read-only',
    routes: () => ({
      '/webhookendpoints': { get: list },
      '/webhookendpoints/counts': { get: count },
      '/webhookendpoints/{id}': { get: show, post: act },
    }),
  };
}

const NO_ENDPOINT = new HttpProblem(404, 'NO_ENDPOINT', 'There is no such endpoint');
const NO_PORTAL = new HttpProblem(404, 'NO_ENDPOINT', 'The configuration has no webhook.sending.portal');
const CHANGED = new HttpProblem(
  412,
  'PRECONDITION_FAILED',
  'The endpoint was changed meanwhile; read it again',
);

function readAction(body: unknown): Action {
  const members = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const [[name, given] = []] = members;
  const action = ACTIONS.find((known) => known === given);
  if (members.length === 1 && name === 'action' && action !== undefined) return action;
  throw new HttpProblem(
    400,
    'INVALID_ENDPOINT',
    'The body must be {"action":"enable"}, {"action":"disable"} or {"action":"portal"}',
  );
}

/** Where a page ends: the place of the last state, and the number of its last endpoint. */
function positionOf(endpoint: StoredEndpoint): string {
  return `${ENDPOINT_STATES.indexOf(endpointState(endpoint))}.${endpoint.seq}`;
}

/** Reads the query of a list. Throws HttpProblem. */
function readQuery(query: Readonly<Record<string, unknown>>) {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (!FIELDS.some((field) => field === name))
      problems.push(
        `There is no such parameter${didYouMean(name, FIELDS) || `; there are ${FIELDS.join(', ')}`}`,
      );
    else if (typeof value !== 'string') problems.push(`${name} is given more than once`);
  }
  const textOf = (name: (typeof FIELDS)[number]) => {
    const { [name]: value } = query;
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const {
    state,
    tenant,
    after = '0.0',
    limit = String(PAGE.usual),
  } = Object.fromEntries(FIELDS.map((name) => [name, textOf(name)]));
  const states = state === undefined ? ENDPOINT_STATES : ENDPOINT_STATES.filter((known) => known === state);
  if (states.length === 0) problems.push(`state must be one of ${ENDPOINT_STATES.join(', ')}`);
  if (tenant !== undefined && !OF_TENANT.test(tenant)) problems.push('tenant must be the name of a tenant');
  const [, first, seq] = /^([0-3])\.(\d{1,15})$/.exec(after) ?? [];
  if (first === undefined) problems.push('after must be the "next" of the page before');
  const most = /^\d{1,4}$/.test(limit) ? Number(limit) : 0;
  if (most < 1 || most > PAGE.max) problems.push(`limit must be a number from 1 to ${PAGE.max}`);
  if (problems.length > 0) throw new HttpProblem(400, 'INVALID_PARAMETER', problems.join('; '));
  return {
    states,
    tenant,
    after: [Number(first), Number(seq)] as const,
    limit: most,
  };
}
