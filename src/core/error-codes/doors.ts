import type { ErrorEntries } from './entry.ts';

/** Codes that every door may answer with. */
export const DOOR_CODES = {
  BAD_REQUEST: {
    status: 400,
    text: 'The request was refused without a code of its own; correct the request.',
  },
  BODY_TOO_LARGE: { status: 413, text: 'The body is larger than its route allows; send less.' },
  BUSY: {
    status: 503,
    text: 'Bodies, imports or unread replies of others take all the room there is; try again after the time in Retry-After.',
  },
  CROSS_SITE: {
    status: 403,
    text: 'A browser sent the request from a page of another site; send it from the same origin. A proxy has to pass on Host, or be named in TRUST_PROXY and send X-Forwarded-Host.',
  },
  DUPLICATE_FIELD: {
    status: 400,
    text: 'The request has a header field twice that may come once, such as Authorization or Content-Type; send one.',
  },
  DUPLICATE_HOST: { status: 400, text: 'The request has several Host headers; send one.' },
  INTERNAL: { status: 500, text: 'An unexpected error; find its cause in the log by the id of the request.' },
  INVALID_UTF8: { status: 400, text: 'The body is not valid UTF-8; encode it as UTF-8.' },
  MALFORMED_FORM: { status: 400, text: 'The form cannot be decoded; send valid percent-encoded UTF-8.' },
  MALFORMED_JSON: { status: 400, text: 'The body is not valid JSON; correct it.' },
  MISSING_HOST: { status: 400, text: 'The request has no Host header; send one.' },
  NO_ROUTE: { status: 404, text: 'The door has no such path, or not with this method (405); check both.' },
  NO_WEBSOCKET: {
    status: 400,
    text: 'The path takes no WebSocket, or not while another request is in progress; send a plain request.',
  },
  PROTO_KEY: { status: 400, text: 'The body has the key "__proto__"; remove it.' },
  TOO_DEEP: { status: 400, text: 'The JSON is nested too deeply; flatten it.' },
  TOO_MANY_HEADERS: { status: 431, text: 'The request has too many header fields; send fewer.' },
  TOO_SLOW: {
    status: 408,
    text: 'The body came so slowly that it had to make room for others; send it faster, or again later.',
  },
  TRANSFER_ENCODING_1_0: {
    status: 400,
    text: 'An HTTP/1.0 request has a Transfer-Encoding; send a Content-Length or use HTTP/1.1.',
  },
  UNKNOWN_EXPECTATION: {
    status: 417,
    text: 'The Expect header asks for something other than 100-continue; leave it out.',
  },
  UNKNOWN_HOST: {
    status: 403,
    text: 'The request asks for a host that is none of the names of the door; ask for localhost, or add the name to HTTP_HOSTS.',
  },
} as const satisfies ErrorEntries;
