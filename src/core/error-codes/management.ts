import type { ErrorEntries } from './entry.ts';

/** Codes of the management door. */
export const MANAGEMENT_CODES = {
  AUDIT_QUERY: {
    status: 400,
    text: 'A parameter of the audit events is not valid; correct what the message names.',
  },
  CONSOLE_REFUSED: {
    status: 403,
    text: 'The console is not for this client, or the request does not come from it; the message says what to set or send.',
  },
  CONSOLE_STREAMS: { status: 503, text: 'Too many consoles are open at once; close some or try later.' },
  CONSOLE_TOPIC: { status: 400, text: 'An event stream of the console has to name its topics; name them.' },
  CPU_PROFILE_BUSY: { status: 429, text: 'A CPU profile is being recorded; wait until it ends.' },
  CPU_PROFILE_SECONDS: {
    status: 400,
    text: 'The duration of a CPU profile is out of range; choose another one.',
  },
  CUSTOM_ENDPOINT: {
    text: 'An operation of a custom endpoint failed; find the cause in the log.',
  },
  CUSTOM_ENDPOINT_TIMEOUT: {
    status: 503,
    text: 'An operation of a custom endpoint took too long; make it faster.',
  },
  DELIVERY_ACTION: { status: 400, text: 'The action is unknown; send "replay" or "discard".' },
  DELIVERY_OPEN: { status: 409, text: 'The delivery is open; wait until it ends, or discard it.' },
  DELIVERY_QUERY: {
    status: 400,
    text: 'The filter of deliveries cannot be read; correct the parameters named.',
  },
  DELIVERY_SETTLED: { status: 409, text: 'The delivery has no open or dead job; there is nothing to do.' },
  DURATION: { status: 400, text: 'The duration cannot be read; send ISO 8601 of at most a day, like PT10M.' },
  FORBIDDEN: { status: 403, text: 'The user lacks the role for this; log in as one who has it.' },
  HEAP_DUMP_BUSY: { status: 429, text: 'A heap dump is being written; wait until it ends.' },
  HEAP_DUMP_MEMORY: { status: 503, text: 'There is too little memory for a heap dump; free some.' },
  HISTORY_QUERY: {
    status: 400,
    text: 'A query of the history is wrong; give a window and a time as documented.',
  },
  LOG_LEVEL: { status: 400, text: 'The log level is unknown; send one of those that are listed.' },
  LOG_NUMBER: { status: 400, text: 'A query of the log is wrong; give the number of an entry.' },
  LOGGER: { status: 400, text: 'The body for a logger cannot be read; send an object with configuredLevel.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    text: 'The path does not take this method; Allow names those that it takes.',
  },
  NO_DELIVERY: {
    status: 404,
    text: 'There is no delivery with this id; it may have been removed after its retention.',
  },
  NO_HANDLER: {
    status: 409,
    text: 'Nothing handles this delivery; configure a handler or a forward for it.',
  },
  NO_JSON: { status: 415, text: 'The body is not declared as JSON; send it as application/json.' },
  NO_METER: { status: 404, text: 'There is no such meter, or none with these tags; list the names first.' },
  NOT_FOUND: {
    status: 404,
    text: 'There is no such endpoint, or it is not exposed; see the index of endpoints.',
  },
  PARAMETER: { status: 400, text: 'A parameter is missing or given twice; give it once.' },
  SPRING_BOOT_ADMIN: {
    text: 'A Spring Boot Admin server refused a call; check its URL and its credentials.',
  },
  TEST_DELIVERY: {
    status: 400,
    text: 'A test delivery cannot be built; give a source, an event and data that go with it.',
  },
  TEST_DELIVERY_UNSENT: {
    status: 502,
    text: 'The webhook door did not take a connection for a test delivery; see its health and its log.',
  },
  TWO_PATTERNS: { status: 400, text: 'Several patterns were given; give one.' },
  WRONG_TAG: { status: 400, text: 'A tag cannot be read; write it as key:value.' },
} as const satisfies ErrorEntries;
