import type { FastifyInstance } from 'fastify';
import { refuse } from './management-errors.ts';

/** Prepares a scope for operations: errors in the door's format, bodies byte for byte. */
export function prepareScope(scope: FastifyInstance): void {
  scope.setErrorHandler(refuse);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}
