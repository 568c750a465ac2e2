import type { FastifyInstance } from 'fastify';
import { parseJsonBody } from './json-body.ts';

export interface BodyOptions {
  /** Largest body in bytes; a larger one is a 413. */
  readonly bodyLimit: number;
}

/** Makes every route of this scope read its body as strict JSON, whatever content type it carries. */
export function readJsonBodies(app: FastifyInstance, options: BodyOptions): void {
  readBodies(app, options, parseJsonBody);
}

/** Makes every route of this scope get its body byte for byte, whatever content type it carries. */
export function readRawBodies(app: FastifyInstance, options: BodyOptions): void {
  readBodies(app, options, (body) => body);
}

function readBodies(
  app: FastifyInstance,
  { bodyLimit }: BodyOptions,
  parse: (body: Uint8Array) => unknown,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_request, body, done) => {
    try {
      done(null, parse(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  // The framework refuses a label that is no media type; without one it does not look. To delete it would make the
  // headers slow for whoever reads them next.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.raw.headers['content-type'] !== undefined) request.raw.headers['content-type'] = undefined;
    done();
  });
}
