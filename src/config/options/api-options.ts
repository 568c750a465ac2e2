import { choice, count, list, text } from './option.ts';

/** A scope (RFC 6749 3.3). */
export const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

const scope = { expected: 'a scope: visible ASCII characters without ", \\ and spaces', pattern: SCOPE };

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
  'api.basic': list({
    expected: `a list of scopes: ${scope.expected.slice('a scope: '.length)}`,
    pattern: SCOPE,
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
} as const;
