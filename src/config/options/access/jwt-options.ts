import { parsePointer } from '../../../core/json-pointer.ts';
import { duration, list, text } from '../option.ts';

/** The options of tokens of an identity provider. */
export const jwtOptions = {
  'api.jwt.issuer': text({
    env: 'API_JWT_ISSUER',
    unset: 'no tokens of an identity provider',
    placeholder: 'url',
    description: 'Issuer (iss) of the JSON Web Tokens that REST and GraphQL accept.',
  }),
  'api.jwt.audience': list({
    env: 'API_JWT_AUDIENCE',
    unset: 'no tokens of an identity provider',
    expected: 'a list of audiences, none of them empty or with control characters',
    pattern: /^(?!\s)\P{Cc}+(?<!\s)$/u,
    description: 'Audiences (aud) of which a JSON Web Token has to name one.',
  }),
  'api.jwt.jwks': text({
    env: 'API_JWT_JWKS',
    unset: 'no tokens of an identity provider',
    placeholder: 'url or file',
    description:
      'Public keys of the issuer as a JSON Web Key Set: a URL, which is read again when a token names another key, or a file, whose changes are followed.',
  }),
  'api.jwt.scopesClaim': text({
    env: 'API_JWT_SCOPES_CLAIM',
    default: 'scope',
    placeholder: 'claim',
    expected: 'the name of a claim, or a JSON pointer like /realm_access/roles',
    pattern: {
      test: (claim) => claim !== '' && (!claim.startsWith('/') || parsePointer(claim) !== undefined),
    },
    description:
      'Claim with the scopes of a JSON Web Token, a text with spaces between them or a list: its name, or a JSON pointer like /realm_access/roles.',
  }),
  'api.jwt.clockSkew': duration({
    env: 'API_JWT_CLOCK_SKEW',
    default: 30_000,
    min: 0,
    max: 600_000,
    description:
      'Difference between the clocks of the issuer and the service that is tolerated, in milliseconds.',
  }),
} as const;
