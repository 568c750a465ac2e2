/** The secrets of the tokens of a test service, by name. */
export const SECRETS = {
  reader: 'reader-token-0123456789',
  writer: 'writer-token-0123456789',
  both: 'both-token-01234567890==',
  neither: 'neither-token-0123456789',
  expired: 'expired-token-0123456789',
} as const;

export type TokenName = keyof typeof SECRETS;

const SCOPES: Readonly<Record<TokenName, readonly string[]>> = {
  reader: ['users:read'],
  writer: ['users:write'],
  both: ['users:read', 'users:write'],
  neither: [],
  expired: ['users:read', 'users:write'],
};

/** `api.tokens` with them. */
export const tokens = Object.fromEntries(
  Object.entries(SCOPES).map(([name, scopes]) => [
    name,
    {
      secret: SECRETS[name as TokenName],
      scopes,
      ...(name === 'expired' ? { expires: '2020-02-29' } : {}),
    },
  ]),
);

/** A configuration module with the tokens and what else is given, as data. */
export function moduleWith(config: Readonly<Record<string, unknown>> = {}): string {
  return `export default ${JSON.stringify({ ...config, api: { tokens, ...Object(config.api) } })};`;
}

export const bearer = (name: TokenName) => `Bearer ${SECRETS[name]}`;
