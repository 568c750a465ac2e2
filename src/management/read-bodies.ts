import type { FastifyInstance } from 'fastify';
import { parseJsonBody } from '../http/body/json-body.ts';
import { HttpProblem } from '../http/problem.ts';
import { MEDIA_TYPES } from './media-type.ts';

/** More than any operation of this door takes, in bytes. */
const BODY_LIMIT = 64 * 1024;

/**
 * Makes the scope read bodies as Actuator does: strict JSON under one of the three media types, undefined
 * when empty; anything else is 415. That a form is none of them keeps other sites' pages from writing.
 */
export function readManagementBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    [...MEDIA_TYPES],
    { parseAs: 'buffer', bodyLimit: BODY_LIMIT },
    (_request, body, done) => {
      try {
        done(null, body.length === 0 ? undefined : parseJsonBody(body as Buffer));
      } catch (error) {
        done(error as Error);
      }
    },
  );
  scope.addContentTypeParser('*', (_request, _body, done) => {
    done(new HttpProblem(415, 'NO_JSON', 'Send the body as application/json'));
  });
}
