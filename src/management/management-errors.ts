import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorFormat, sendProblem } from '../http/error-format.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { COMMON_HEADERS } from './replies.ts';

/** Every refusal of this door is one small JSON object. What is no refusal of our own has only its reason phrase. */
export const managementErrors: ErrorFormat = {
  contentType: 'application/json',
  headers: COMMON_HEADERS,
  body({ status, message }) {
    const error = reasonPhrase(status);
    return JSON.stringify(message === error ? { status, error } : { status, error, message });
  },
};

// Created once, because the stack of a refusal is not used.
/** The refusal of a path that no endpoint answers. */
export const NOT_FOUND = new HttpProblem(404, 'NOT_FOUND', 'There is no such endpoint');
/** The refusal without proper credentials. */
export const UNAUTHORIZED = new HttpProblem(401, 'UNAUTHORIZED', 'This needs a user name and a password', {
  headers: { 'www-authenticate': 'Basic realm="portico", charset="UTF-8"' },
});
/** The refusal of a user without the required role. */
export const FORBIDDEN = new HttpProblem(403, 'FORBIDDEN', 'This user does not have the role for it');

/** The refusal of a method that a path does not take; `allow` lists those that it takes. */
export function methodNotAllowed(allow: string): HttpProblem {
  const message = 'The path does not take this method; Allow names those that it takes';
  return new HttpProblem(405, 'METHOD_NOT_ALLOWED', message, { headers: { allow } });
}

/** Answers with an error in the door's format; a fault of ours is logged. */
export function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendProblem(managementErrors, error, request, reply);
}
