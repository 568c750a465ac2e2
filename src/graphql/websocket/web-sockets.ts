import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, type Server } from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { exchangeOf } from '../../http/add-endpoint.ts';
import type { BodyBudget } from '../../http/body/body-budget.ts';
import { HttpProblem } from '../../http/problem.ts';
import type { ReplyBudget } from '../../http/reply/reply-budget.ts';
import { noteSwitch, type Upgrade } from '../../http/server/upgrades.ts';
import { requestFields } from '../../observability/trace/request-fields.ts';
import type { RunOptions } from '../run-request.ts';
import { GraphqlSocket } from './graphql-socket.ts';
import { judgeHandshake } from './handshake.ts';
import { Heartbeat } from './heartbeat.ts';
import type { WebSocketLimits } from './limits.ts';
import { OperationSlots } from './operation-slots.ts';
import { Outlet } from './outlet.ts';
import { createProtocol } from './protocol.ts';

/** How long a client may take to answer a close, in milliseconds. */
const CLOSE_TIMEOUT = 2_000;

/** Frames of one message: a few, and one for each kilobyte of the largest. */
const MAX_FRAGMENTS = 16;
const FRAGMENT = 1_024;
/** Pieces of one frame as the network brings them: packets may be small, and few clients send single bytes. */
const MAX_CHUNKS = 1_024;
const CHUNK = 256;

/** What the WebSockets of a door are made with. */
export interface WebSocketsOptions extends WebSocketLimits {
  readonly schema: GraphQLSchema;
  /** Largest message of a client, in bytes. */
  readonly maxBodyBytes: number;
}

/** Bounds what the WebSockets of a door hold. */
export interface WebSocketBudgets {
  /** Results that clients have not read. */
  readonly replies: ReplyBudget;
  /** Messages that have not ended. */
  readonly bodies: BodyBudget;
}

/** The WebSockets of one door: operations by the protocol graphql-transport-ws. */
export class WebSockets {
  readonly #max: number;
  readonly #server: WebSocketServer;
  readonly #protocol: Server<GraphqlSocket>;
  readonly #slots: OperationSlots;
  readonly #run: RunOptions;
  readonly #budget: ReplyBudget;
  readonly #bodies: BodyBudget;
  readonly #heartbeat = new Heartbeat();
  readonly #open = new Set<GraphqlSocket>();
  #hasEnded = false;

  constructor(options: WebSocketsOptions, run: RunOptions, budgets: WebSocketBudgets) {
    this.#budget = budgets.replies;
    this.#bodies = budgets.bodies;
    this.#run = run;
    this.#max = options.maxWebSockets;
    this.#slots = new OperationSlots(options);
    this.#protocol = createProtocol(options.schema, run);
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: options.maxBodyBytes,
      maxFragments: MAX_FRAGMENTS + Math.ceil(options.maxBodyBytes / FRAGMENT),
      maxBufferedChunks: MAX_CHUNKS + Math.ceil(options.maxBodyBytes / CHUNK),
      // One message per turn of the event loop, however many have come.
      allowSynchronousEvents: false,
      closeTimeout: CLOSE_TIMEOUT,
      handleProtocols: () => GRAPHQL_TRANSPORT_WS_PROTOCOL,
    } as ConstructorParameters<typeof WebSocketServer>[0]);
  }

  /** How many are open. */
  get open(): number {
    return this.#open.size;
  }

  /** How many operations are in progress on them. */
  get operations(): number {
    return this.#slots.taken;
  }

  /** Makes a request's connection a WebSocket. Throws HttpProblem. */
  accept({ socket, head }: Upgrade, request: FastifyRequest, reply: FastifyReply): void {
    judgeHandshake(request, this.#run.cors);
    if (this.#hasEnded) throw unavailable('STOPPING', 'The service is stopping');
    if (this.#open.size >= this.#max)
      throw unavailable('TOO_MANY_WEBSOCKETS', 'Too many WebSockets are open');
    const exchange = exchangeOf(request);
    reply.hijack();
    this.#server.handleUpgrade(request.raw, socket, head, (client) => {
      noteSwitch(reply.raw);
      const outlet = new Outlet(client, socket, this.#budget);
      const options = {
        client,
        exchange,
        outlet,
        slots: this.#slots,
        connection: socket,
        budget: this.#bodies,
      };
      this.#add(client, new GraphqlSocket(options));
      this.#heartbeat.add(client, socket);
    });
  }

  #add(client: WebSocket, opened: GraphqlSocket): void {
    const { log } = opened.exchange;
    const fields = requestFields(opened.exchange);
    this.#open.add(opened);
    const closed = this.#protocol.opened(opened, opened);
    // The client broke the rules of WebSockets; it is told, and the connection closed.
    client.on('error', (error) => log.debug({ ...fields, err: error }, 'WebSocket refused'));
    client.once('close', (code, reason) => {
      this.#open.delete(opened);
      this.#heartbeat.delete(client);
      opened.release();
      closed(code, String(reason)).catch((error: unknown) => {
        log.error({ ...fields, err: error }, 'WebSocket not closed cleanly');
      });
    });
  }

  /** Completes all subscriptions and closes all WebSockets once their operations have ended; refuses new ones. */
  end(): void {
    this.#hasEnded = true;
    for (const socket of this.#open) socket.end();
  }
}

function unavailable(code: 'STOPPING' | 'TOO_MANY_WEBSOCKETS', message: string): HttpProblem {
  return new HttpProblem(503, code, message, { headers: { 'retry-after': '1' } });
}
