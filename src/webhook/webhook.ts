import { randomUUIDv7 } from 'node:crypto';
import type { FastifyPluginCallback, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/error-format.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { readRawBodies } from '../http/read-bodies.ts';
import type { NewDelivery } from '../inbox/delivery.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import { TEXT_TYPE, webhookErrors } from './error-format.ts';
import type { JobPlan } from './job-plan.ts';
import { tokenGuard } from './token-guard.ts';

export interface WebhookOptions {
  readonly inbox: Inbox;
  /** The shared secrets that are accepted in x-webhook-token; none: not secured. */
  readonly secrets: readonly string[];
  /** Which jobs a delivery gets. */
  readonly plan: JobPlan;
  /** Told of each delivery once it is durable, or known already. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Largest body in bytes; default 1 MiB. */
  readonly bodyLimit?: number;
}

/** The webhook receiver (contract 4.4) as a Fastify plugin. */
export const webhook: FastifyPluginCallback<WebhookOptions> = (app, options, ready) => {
  const { inbox, plan, onAppended, secrets, bodyLimit = 1024 * 1024 } = options;
  readRawBodies(app, { bodyLimit });
  app.setErrorHandler((error, request, reply) => sendProblem(webhookErrors, error, request, reply));

  app.post('/webhook', { onRequest: tokenGuard(secrets) }, async (request, reply) => {
    const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    const parsed = parseJsonBody(body);
    const event = eventOf(parsed);
    const delivery: NewDelivery = {
      id: randomUUIDv7(),
      source: '',
      event,
      dataPointer: '/data',
      contentType: contentTypeOf(request),
      body,
      receivedAt: Date.now(),
      dedupKey: null,
      jobs: plan(event, parsed),
    };
    onAppended(delivery, await inbox.append(delivery));
    return reply.type(TEXT_TYPE).send('Webhook received');
  });

  app.setNotFoundHandler((request, reply) => {
    const known = request.url.slice(app.prefix.length).split('?', 1)[0] === '/webhook';
    if (known) reply.header('allow', 'POST');
    const status = known ? 405 : 404;
    return sendProblem(
      webhookErrors,
      new HttpProblem(status, 'NO_ROUTE', reasonPhrase(status)),
      request,
      reply,
    );
  });
  ready();
};

/** The body is read whatever it is labelled, so its label stands only where it came in. */
function contentTypeOf({ raw: { rawHeaders } }: FastifyRequest): string | null {
  const name = rawHeaders.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-type');
  return rawHeaders[name + 1] ?? null;
}

/** The `event` of a body (contract 2.5); null when the body is any other JSON value. */
function eventOf(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const { event } = body as { readonly event?: unknown };
  return typeof event === 'string' ? event : null;
}
