import type { FastifyInstance } from 'fastify';

/** Makes every route of this scope get its body byte for byte, whatever its label says. */
export function readRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}
