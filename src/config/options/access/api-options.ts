import { didYouMean } from '../../../core/suggest.ts';
import { choice, count, duration, list, text } from '../option.ts';

/** A scope (RFC 6749 3.3). */
export const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** What scopes are configured with. */
interface ScopeOptions {
  readonly readScope?: string;
  readonly writeScope?: string;
  readonly scopes?: readonly string[];
}

/** The scopes that exist: those that operations need, and those that the configuration adds. */
export function knownScopes({ readScope, writeScope, scopes }: ScopeOptions): readonly string[] {
  return [
    readScope ?? apiOptions['api.readScope'].default,
    writeScope ?? apiOptions['api.writeScope'].default,
    ...(scopes ?? apiOptions['api.scopes'].default),
  ];
}

/** One line for each scope that does not exist: whoever has it by a typing error could do nothing with it. */
export function unknownScopes(
  where: string,
  scopes: Iterable<string>,
  known: readonly string[],
): readonly string[] {
  const exist = `there are ${[...new Set(known)].join(', ')}; API_SCOPES adds your own`;
  return Array.from(scopes)
    .filter((scope) => !known.includes(scope))
    .map((scope) => `${where} names ${scope}, which is no scope (${exist})${didYouMean(scope, known)}`);
}

const scope = { expected: 'a scope: visible ASCII characters without ", \\ and spaces', pattern: SCOPE };
const scopeList = {
  expected: `a list of scopes: ${scope.expected.slice('a scope: '.length)}`,
  pattern: SCOPE,
};

/** A rate. */
export const RATE = /^[1-9]\d{0,6}\/[smh]$/;

/** The options of access to REST and GraphQL. */
export const apiOptions = {
  'api.required': choice({
    env: 'API_REQUIRED',
    default: 'none',
    choices: ['none', 'write', 'all'],
    description:
      'Operations of REST and GraphQL that need credentials: none, those that write, or all (none, write, all).',
  }),
  'api.readScope': text({
    ...scope,
    env: 'API_READ_SCOPE',
    default: 'users:read',
    placeholder: 'scope',
    description: 'Scope that reads, queries and subscriptions need where they need credentials.',
  }),
  'api.writeScope': text({
    ...scope,
    env: 'API_WRITE_SCOPE',
    default: 'users:write',
    placeholder: 'scope',
    description: 'Scope that writes and mutations need where they need credentials.',
  }),
  'api.scopes': list({
    ...scopeList,
    env: 'API_SCOPES',
    default: [],
    description:
      'Scopes of your own, which your resolvers look for in caller.scopes. Tokens may have these and the two above; any other scope is refused as a mistake.',
  }),
  'api.basic': list({
    ...scopeList,
    env: 'API_BASIC',
    default: [],
    description:
      'Scopes that each user of the management door has at REST and GraphQL, by Basic, beside those that its roles name; with none there is no Basic.',
  }),
  'api.maxFailures': count({
    env: 'API_MAX_FAILURES',
    default: 10,
    description:
      'Wrong credentials from one address within a minute after which further ones from there are refused for the rest of it; 0 for no limit.',
  }),
  'api.rate': text({
    env: 'API_RATE',
    unset: 'no limit',
    placeholder: 'rate',
    expected: 'a rate like 100/s, 1000/m or 50000/h',
    pattern: RATE,
    description:
      'Requests that each client may make to REST and GraphQL, like 100/s, counted in each process: by token or user, else by address.',
  }),
  'api.maxLoopDelay': duration({
    env: 'API_MAX_LOOP_DELAY',
    default: 0,
    min: 0,
    max: 3_600_000,
    description:
      'Delay of the event loop above which REST and GraphQL refuse requests with 503, in milliseconds; 0 for no limit.',
  }),
  'api.maxWriteDelay': duration({
    env: 'API_MAX_WRITE_DELAY',
    default: 0,
    min: 0,
    max: 3_600_000,
    description:
      'Time that a write of users has waited for its commit above which REST and GraphQL refuse further writes with 503, in milliseconds; 0 for no limit.',
  }),
  'api.burst': count({
    env: 'API_BURST',
    default: 0,
    description:
      'Requests of a client that may come at once after a pause; 0 for as many as the rate has in its unit.',
  }),
} as const;
