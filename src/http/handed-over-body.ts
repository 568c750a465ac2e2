import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';

const BODY = Symbol('handed-over body');

interface Received extends IncomingMessage {
  [BODY]?: Buffer;
}

/** Leaves a body that was read already to the framework, which reads it again. */
export function handOverBody(request: IncomingMessage, body: Buffer): void {
  (request as Received)[BODY] = body;
}

/** Has the framework take bodies that were handed over; call it where a route has a part in the direct lane. */
export function receiveHandedOver(app: FastifyInstance): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const body = (request.raw as Received)[BODY];
    done(null, body === undefined ? payload : Readable.from([body], { objectMode: false }));
  });
}
