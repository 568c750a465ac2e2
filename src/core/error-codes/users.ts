import type { ErrorEntries } from './entry.ts';

/** Codes of users, in whatever door they are written and read. */
export const USER_CODES = {
  COLLECTION_FULL: { text: 'GraphQL keeps no more users in memory; raise `GRAPHQL_MAX_USERS`.' },
  USER_NOT_FOUND: { status: 404, text: 'There is no user with this id; it may have been deleted.' },
  INVALID_USER: {
    status: 400,
    text: 'The name or the email of a user is missing, blank, too long or malformed; correct it. The message of GraphQL, problem details and the log of REST say what is wrong.',
  },
  EMAIL_TAKEN: {
    status: 409,
    text: 'Another user has this email, in whatever case, and `USERS_UNIQUE_EMAIL` is on; choose another one or change that user.',
  },
  UNKNOWN_PARAMETER: {
    status: 400,
    text: 'The list has no such query parameter; correct its name, or send `Prefer: handling=lenient` to have it ignored.',
  },
  INVALID_PARAMETER: {
    status: 400,
    text: 'A query parameter does not take this value; send what the message says.',
  },
  INVALID_CURSOR: {
    status: 400,
    text: 'The cursor is not one of this list, or was changed; begin again without a cursor.',
  },
  SEARCH_OFF: {
    status: 400,
    text: 'There are more than 10,000 users and no index for what was asked; set `REST_SEARCH`.',
  },
  TOO_MANY_MATCHES: {
    status: 400,
    text: 'More than 10,000 users would have to be sorted or filtered for a page; add a narrower filter, or do as the message says.',
  },
  EVENTS_GONE: {
    status: 410,
    text: 'The event in `Last-Event-ID` is not kept any more, or not in this database; read the list again and follow without an id.',
  },
  INVALID_EVENT_ID: {
    status: 400,
    text: 'The `Last-Event-ID` is no id of an event of this list; send the last one that came, or none.',
  },
  TOO_MANY_STREAMS: {
    status: 503,
    text: 'As many clients follow the users as may; try again after the time in Retry-After, or raise `REST_MAX_STREAMS`.',
  },
  INVALID_IDEMPOTENCY_KEY: {
    status: 400,
    text: 'The `Idempotency-Key` is empty, longer than 255 characters or has others than visible ASCII ones; send a UUID for example.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    text: 'The `Idempotency-Key` came with another body before; send a new key with a new request.',
  },
  IDEMPOTENCY_KEY_IN_USE: {
    status: 409,
    text: 'A request with this `Idempotency-Key` is in progress; send it again for its reply.',
  },
  PRECONDITION_FAILED: {
    status: 412,
    text: 'The user has another version than `If-Match` names, or was changed after `If-Unmodified-Since`; nothing was written. Read it again.',
  },
  PRECONDITION_REQUIRED: {
    status: 428,
    text: 'An update or a deletion needs `If-Match` with the ETag of the user, because `REST_REQUIRE_IF_MATCH` is on; send it.',
  },
  SLOW_SUBSCRIBER: { text: 'A subscriber fell too far behind; subscribe again and read what was missed.' },
} as const satisfies ErrorEntries;
