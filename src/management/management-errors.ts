import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorFormat, sendProblem } from '../http/error-format.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { COMMON_HEADERS } from './json-reply.ts';

/** Every refusal of this door is one small JSON object; from 500 on it says nothing about the inside. */
export const managementErrors: ErrorFormat = {
  contentType: 'application/json',
  body({ status, message }) {
    const error = reasonPhrase(status);
    return JSON.stringify(
      status >= 500 || message === error ? { status, error } : { status, error, message },
    );
  },
};

/** Made once: a refusal is an answer like any other, and its stack tells nobody anything. */
export const NOT_FOUND = new HttpProblem(404, 'NOT_FOUND', 'There is no such endpoint');
export const METHOD_NOT_ALLOWED = new HttpProblem(
  405,
  'METHOD_NOT_ALLOWED',
  'The path does not take this method; Allow names those that it takes',
);
export const UNAUTHORIZED = new HttpProblem(401, 'UNAUTHORIZED', 'This needs a user name and a password');
export const FORBIDDEN = new HttpProblem(403, 'FORBIDDEN', 'This user does not have the role for it');

/** Answers with a status from 500 on that is no fault and tells its reason, for an operator to act on. */
export function refuseWithReason(reply: FastifyReply, status: number, message: string): FastifyReply {
  const body = JSON.stringify({ status, error: reasonPhrase(status), message });
  return reply
    .code(status)
    .headers({ ...COMMON_HEADERS, 'content-type': 'application/json' })
    .send(Buffer.from(body));
}

/** Answers with an error in the door's format; what is our own fault is logged. */
export function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendProblem(managementErrors, error, request, reply.headers(COMMON_HEADERS));
}
