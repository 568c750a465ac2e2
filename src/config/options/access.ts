import { parsePointer } from '../../core/json.ts';
import { didYouMean } from '../../core/text.ts';
import { choice, count, inModule, list, text, toggle } from './option.ts';

/** Access to an endpoint: none (it answers 404), reads only, or all operations. */
export const accessLevels = ['none', 'read-only', 'unrestricted'] as const;

/** A level of access. */
export type Access = (typeof accessLevels)[number];

/** One entry of management.endpointAccess. */
export const endpointAccessPattern = /^([a-zA-Z][a-zA-Z0-9.-]*)=(none|read-only|unrestricted)$/;

/** Parses entries like `loggers=read-only`; skips invalid ones. */
export function readEndpointAccess(entries: readonly string[]): ReadonlyMap<string, Access> {
  const levels = new Map<string, Access>();
  for (const entry of entries) {
    const [, id, level] = endpointAccessPattern.exec(entry) ?? [];
    const access = accessLevels.find((each) => each === level);
    if (id !== undefined && access !== undefined) levels.set(id, access);
  }
  return levels;
}

/** A scope (RFC 6749 3.3). */
export const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** The options that define scopes. */
interface ScopeOptions {
  readonly readScope?: string;
  readonly writeScope?: string;
  readonly scopes?: readonly string[];
}

/** The known scopes: those that operations need, and those that the configuration adds. */
export function knownScopes({ readScope, writeScope, scopes }: ScopeOptions): readonly string[] {
  return [
    readScope ?? api.readScope.default,
    writeScope ?? api.writeScope.default,
    ...(scopes ?? api.scopes.default),
  ];
}

/** Returns one line for each unknown scope; a token with a misspelt scope would be useless. */
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

/** The syntax of a rate. */
export const RATE = /^[1-9]\d{0,6}\/[smh]$/;

/** Access to REST and GraphQL, and the tokens of an identity provider. */
export const api = {
  required: choice({
    env: 'API_REQUIRED',
    default: 'none',
    choices: ['none', 'write', 'all'],
    help: 'Operations of REST and GraphQL that need credentials: none, writes, or all (none, write, all).',
    essential: true,
  }),
  readScope: text({
    ...scope,
    env: 'API_READ_SCOPE',
    default: 'users:read',
    placeholder: 'scope',
    help: 'Scope that reads, queries and subscriptions require if they need credentials.',
  }),
  writeScope: text({
    ...scope,
    env: 'API_WRITE_SCOPE',
    default: 'users:write',
    placeholder: 'scope',
    help: 'Scope that writes and mutations require if they need credentials.',
  }),
  scopes: list({
    ...scopeList,
    env: 'API_SCOPES',
    default: [],
    help: 'Additional scopes, which your resolvers check in caller.scopes. Tokens may have these and the two above; any other scope is refused.',
  }),
  basic: list({
    ...scopeList,
    env: 'API_BASIC',
    default: [],
    help: 'Scopes that each user of the management door has at REST and GraphQL by HTTP Basic, in addition to those that its roles name. Without any, Basic is off.',
  }),
  maxFailures: count({
    default: 10,
    help: 'Maximum wrong credentials from one address within a minute; further ones are refused for the rest of it. 0 for no limit.',
  }),
  rate: text({
    env: 'API_RATE',
    unset: 'no limit',
    placeholder: 'rate',
    expected: 'a rate like 100/s, 1000/m or 50000/h',
    pattern: RATE,
    help: 'Maximum rate of requests of each client to REST and GraphQL, such as 100/s, per process. A client is a token or user, otherwise an address.',
  }),
  maxLoopDelay: count({
    unit: 'ms',
    env: 'API_MAX_LOOP_DELAY',
    default: 0,
    min: 0,
    max: 3_600_000,
    help: 'Delay of the event loop above which REST and GraphQL refuse requests with 503, in milliseconds; 0 for no limit.',
  }),
  maxWriteDelay: count({
    unit: 'ms',
    env: 'API_MAX_WRITE_DELAY',
    default: 0,
    min: 0,
    max: 3_600_000,
    help: 'Maximum time that a write of users may wait for its commit before REST and GraphQL refuse further writes with 503, in milliseconds; 0 for no limit.',
  }),
  burst: count({
    env: 'API_BURST',
    default: 0,
    help: 'Maximum burst of requests of a client after a pause; 0 for as many as the rate allows per unit.',
  }),
  jwt: {
    issuer: text({
      env: 'API_JWT_ISSUER',
      unset: 'no tokens of an identity provider',
      placeholder: 'url',
      help: 'Issuer (iss) of the JSON Web Tokens that REST and GraphQL accept.',
    }),
    audience: list({
      env: 'API_JWT_AUDIENCE',
      unset: 'no tokens of an identity provider',
      expected: 'a list of audiences, none of them empty or with control characters',
      pattern: /^(?!\s)\P{Cc}+(?<!\s)$/u,
      help: 'Audiences (aud); a JSON Web Token must name one of them.',
    }),
    jwks: text({
      env: 'API_JWT_JWKS',
      unset: 'no tokens of an identity provider',
      placeholder: 'url or file',
      help: 'Public keys of the issuer as a JSON Web Key Set: a URL, which Portico fetches again if a token names an unknown key, or a file, which it reloads when it changes.',
    }),
    scopesClaim: text({
      env: 'API_JWT_SCOPES_CLAIM',
      default: 'scope',
      placeholder: 'claim',
      expected: 'the name of a claim, or a JSON pointer like /realm_access/roles',
      pattern: {
        test: (claim) => claim !== '' && (!claim.startsWith('/') || parsePointer(claim) !== undefined),
      },
      help: 'Claim with the scopes of a JSON Web Token, a space-separated text or a list: its name, or a JSON pointer such as /realm_access/roles.',
    }),
    clockSkew: count({
      unit: 'ms',
      default: 30_000,
      min: 0,
      max: 600_000,
      help: 'Tolerated difference between the clocks of the issuer and the service, in milliseconds.',
    }),
  },
  tokens: inModule({
    json: true,
    shape: '{ [name]: { secret, scopes: [scope], expires } }',
    help: 'Tokens for REST and GraphQL by name. `secret` is a text, `{ env }` or `{ file }`, or several of them during a rotation; Portico reloads changed files. `expires` is a date. Plain data, so also allowed in .json.',
  }),
} as const;

/** Whether a text is an origin as browsers write it, or `*`. */
function isOrigin(text: string): boolean {
  if (text === '*') return true;
  if (/^https?:/.test(text))
    return !text.includes('*') && URL.canParse(text) && new URL(text).origin === text;
  return /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(?::\d{1,5})?$/.test(text);
}

/** The CORS settings of a door. */
export function cors(door: 'rest' | 'graphql', title: string) {
  const env = door.toUpperCase();
  return {
    origins: list({
      env: `${env}_CORS_ORIGINS`,
      default: [],
      expected: 'a list of origins like https://app.example.com, without a path, or *',
      pattern: { test: isOrigin },
      help: `Origins whose pages may use the ${title} door, separated by commas; * for all.`,
    }),
    credentials: toggle({
      env: `${env}_CORS_CREDENTIALS`,
      default: false,
      help: `Whether browsers may send cookies and passwords from those pages to the ${title} door. Not needed for tokens in Authorization.`,
    }),
    maxAge: count({
      default: 600,
      help: `Time for which browsers may cache that a page may use the ${title} door, in seconds.`,
    }),
  } as const;
}
