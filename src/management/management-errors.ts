import {
  type ErrorFormat,
  HttpProblem,
  preferred,
  type Reply,
  type RequestContext,
  reasonPhrase,
  sendProblem,
} from '@portico/transport';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** On every reply of this door: it is about this moment and for this reader. */
export const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

/** On a reply whose content the Accept header chooses. */
export const NEGOTIATED_HEADERS = { ...COMMON_HEADERS, vary: 'accept' } as const;

/** The reply of a write that has nothing to say. */
export const NO_CONTENT: Reply = { status: 204, type: '', body: '', headers: COMMON_HEADERS };

/** A value as JSON, under the media type that the client prefers. */
export function jsonReply(ctx: Pick<RequestContext, 'headers'>, value: unknown): Reply {
  return jsonTextReply(ctx, JSON.stringify(value));
}

/** The same for JSON that is written already. */
export function jsonTextReply({ headers }: Pick<RequestContext, 'headers'>, body: string | Buffer): Reply {
  return { status: 200, type: mediaTypeFor(headers.accept), body, headers: COMMON_HEADERS };
}

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

/** The media types of this door's JSON, the preferred one first. */
export const MEDIA_TYPES = [
  'application/vnd.spring-boot.actuator.v3+json',
  'application/vnd.spring-boot.actuator.v2+json',
  'application/json',
] as const;

/** One of them. */
export type MediaType = (typeof MEDIA_TYPES)[number];

/** The one that an Accept header wants most; a header that accepts none of them gets the first. */
export function mediaTypeFor(accept: string | undefined): MediaType {
  return preferred(accept, MEDIA_TYPES) ?? MEDIA_TYPES[0];
}
