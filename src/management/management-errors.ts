import {
  type ErrorFormat,
  HttpProblem,
  type Reply,
  type RequestContext,
  reasonPhrase,
  sendProblem,
} from '@portico/transport';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ExpectedError } from '../core/errors.ts';
import { preferred } from '../core/negotiation.ts';

/** The headers of every reply of this door, whose content depends on the time and the user. */
export const COMMON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

/** The headers of a reply whose content depends on the Accept header. */
export const NEGOTIATED_HEADERS = { ...COMMON_HEADERS, vary: 'accept' } as const;

/** The reply to a successful write without a result. */
export const NO_CONTENT: Reply = { status: 204, type: '', body: '', headers: COMMON_HEADERS };

/** A value as JSON, in the media type that the client prefers. */
export function jsonReply(ctx: Pick<RequestContext, 'headers'>, value: unknown): Reply {
  return jsonTextReply(ctx, JSON.stringify(value));
}

/** Like `jsonReply`, for serialised JSON. */
export function jsonTextReply({ headers }: Pick<RequestContext, 'headers'>, body: string | Buffer): Reply {
  return { status: 200, type: mediaTypeFor(headers.accept), body, headers: COMMON_HEADERS };
}

/** Every refusal is one small JSON object, with a message only if it is an HttpProblem. */
export const managementErrors: ErrorFormat = {
  contentType: 'application/json',
  headers: COMMON_HEADERS,
  body({ status, message }) {
    const error = reasonPhrase(status);
    return JSON.stringify(message === error ? { status, error } : { status, error, message });
  },
};

// Created once; nothing uses a refusal's stack.
export const NOT_FOUND = new HttpProblem(404, 'NOT_FOUND', 'There is no such endpoint');

export const FORBIDDEN = new HttpProblem(403, 'FORBIDDEN', 'This user does not have the role for it');

/** The refusal of a method; `allow` lists the methods that the path takes. */
export function methodNotAllowed(allow: string): HttpProblem {
  const message = 'The path does not support this method; Allow lists those that it supports';
  return new HttpProblem(405, 'METHOD_NOT_ALLOWED', message, { headers: { allow } });
}

export function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendProblem(managementErrors, error, request, reply);
}

/** The media types of this door's JSON, most preferred first. */
export const MEDIA_TYPES = [
  'application/vnd.spring-boot.actuator.v3+json',
  'application/vnd.spring-boot.actuator.v2+json',
  'application/json',
] as const;

type MediaType = (typeof MEDIA_TYPES)[number];

/** The media type that an Accept header prefers; the first one if it accepts none. */
export function mediaTypeFor(accept: string | undefined): MediaType {
  return preferred(accept, MEDIA_TYPES) ?? MEDIA_TYPES[0];
}

/** The options of the management door are invalid; the message says what to change. */
export class ManagementOptionsError extends ExpectedError {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}
