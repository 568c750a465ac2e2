import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ShowDetails } from '../../config/options/health-names.ts';
import { HttpProblem } from '../../http/problem.ts';
import { detailJson, summaryJson } from '../../inbox/delivery-json.ts';
import type { DeliveryLog, DeliverySummary } from '../../inbox/delivery-log.ts';
import { deliveryPages } from '../../inbox/delivery-pages.ts';
import { discardDelivery, type ReplayPlan, replayDelivery } from '../../inbox/replay-delivery.ts';
import type { Endpoint } from '../endpoint.ts';
import { detailsShown } from '../health/show-details.ts';
import { COMMON_HEADERS, jsonBytes, replyJson } from '../json-reply.ts';
import { addOperations } from '../operations.ts';
import { addReadRoute } from '../read-route.ts';
import { readDeliveriesQuery } from './deliveries-query.ts';

/** The deliveries of the webhook door, and what is done when one is to be handled again. */
export interface DeliveriesView {
  readonly log: DeliveryLog;
  readonly plan: ReplayPlan;
}

export interface DeliveriesOptions {
  /** When bodies and errors are shown. */
  readonly showDetails: ShowDetails;
  /** Takes out of an error what nobody may see. */
  mask(text: string): string;
}

/** A request ends its search after so many pages of the log, found or not; the client goes on with the next one. */
const MAX_PAGES = 100;
/** A longer body is cut, in bytes: whoever wants it whole has the command line. */
const MAX_BODY = 64 * 1024;
// Nobody else comes past the guard, and where there is none everybody is.
const AUTHORIZED = true;

type WithId = { readonly Params: { readonly id: string } };

/** The deliveries endpoint: which deliveries came and what became of them; who may write has them handled again. */
export function deliveriesEndpoint(
  { log, plan }: DeliveriesView,
  { showDetails, mask }: DeliveriesOptions,
): Endpoint {
  const view = { shown: detailsShown(showDetails, AUTHORIZED), maxBodyBytes: MAX_BODY, mask };

  async function list(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { filter, limit, before } = readDeliveriesQuery(request.query as Readonly<Record<string, unknown>>);
    const cursor = before === undefined ? {} : { cursor: { before } };
    const items: DeliverySummary[] = [];
    let next: number | undefined;
    for await (const page of deliveryPages(log, filter, { limit, pages: MAX_PAGES, ...cursor })) {
      items.push(...page.items);
      next = page.next;
    }
    return replyJson(reply, jsonBytes({ items: items.map(summaryJson), next: next ?? null }));
  }

  async function show(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const found = await log.find((request as FastifyRequest<WithId>).params.id);
    if (found === undefined) throw NO_DELIVERY;
    return replyJson(reply, Buffer.from(detailJson(found, view)));
  }

  async function act(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { id } = (request as FastifyRequest<WithId>).params;
    const action = readAction(request.body);
    const result =
      action === 'replay'
        ? await replayDelivery(log, plan, id, Date.now())
        : await discardDelivery(log, id, Date.now());
    if (result === 'not-found') throw NO_DELIVERY;
    if (result !== 'replayed' && result !== 'discarded') throw CONFLICTS[result];
    request.log.info({ reqId: request.id, delivery: id }, `delivery ${result} on request`);
    return reply.code(204).headers(COMMON_HEADERS).send();
  }

  return {
    id: 'deliveries',
    about: 'Which webhook deliveries came and what became of them (?status=dead&since=2h).',
    ownAccess: 'read-only',
    links: [
      { name: 'deliveries', path: '/deliveries', templated: false },
      { name: 'deliveries-id', path: '/deliveries/{id}', templated: true },
    ],
    addRoutes(scope, access) {
      addReadRoute(scope, '/deliveries', list);
      addOperations(scope, '/deliveries/:id', {
        GET: show,
        POST: access === 'unrestricted' ? act : undefined,
      });
    },
  };
}

const NO_DELIVERY = new HttpProblem(404, 'NO_DELIVERY', 'There is no such delivery');
const CONFLICTS = {
  open: new HttpProblem(409, 'DELIVERY_OPEN', 'The delivery is still open; wait for its end, or discard it'),
  'no-handler': new HttpProblem(409, 'NO_HANDLER', 'Nothing handles this delivery now'),
  settled: new HttpProblem(409, 'DELIVERY_SETTLED', 'Nothing of the delivery is open or dead'),
} as const;

function readAction(body: unknown): 'replay' | 'discard' {
  const members = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const [[name, action] = []] = members;
  if (members.length === 1 && name === 'action' && (action === 'replay' || action === 'discard'))
    return action;
  throw new HttpProblem(
    400,
    'DELIVERY_ACTION',
    'The body has to be {"action":"replay"} or {"action":"discard"}',
  );
}
