import type { FastifyInstance } from 'fastify';
import { readRawBodies } from '../http/body/read-bodies.ts';
import { refuse } from './management-errors.ts';

/** Prepares a scope for operations: errors in the door's format, bodies byte for byte. */
export function prepareScope(scope: FastifyInstance): void {
  scope.setErrorHandler(refuse);
  readRawBodies(scope);
}
