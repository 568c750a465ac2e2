import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

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

/** What a token says beside what every token says. */
export interface Claims {
  readonly [claim: string]: unknown;
}

/** An identity provider on this machine, whose keys can be replaced. */
export interface Issuer extends AsyncDisposable {
  /** Of its keys. */
  readonly url: string;
  readonly keys: () => { readonly keys: readonly JWK[] };
  /** How often the keys were asked for. */
  readonly asked: number;
  /** Makes it answer, or not. */
  up: boolean;
  /** Replaces its keys by one new one. */
  rotate(algorithm?: string): Promise<void>;
  /** Signs a token that ends after `expires`; never where that is null. */
  sign(
    claims?: Claims,
    options?: { readonly expires?: string | null; readonly kid?: string | undefined },
  ): Promise<string>;
}

export const ISSUER = 'https://id.example.com';
export const AUDIENCE = 'portico';

export async function startIssuer(algorithm = 'ES256'): Promise<Issuer> {
  let name = '';
  let alg = algorithm;
  let pair = await generateKeyPair(alg, { extractable: true });
  let jwk: JWK = {};
  let count = 0;
  let asked = 0;
  const rotate = async (next = alg) => {
    alg = next;
    pair = await generateKeyPair(alg, { extractable: true });
    name = `key-${++count}`;
    jwk = { ...(await exportJWK(pair.publicKey)), kid: name, alg, use: 'sig' };
  };
  await rotate();
  const keys = () => ({ keys: [jwk] });
  const issuer = { up: true };
  const server = createServer((_request, reply) => {
    asked++;
    if (!issuer.up) {
      reply.writeHead(500).end();
      return;
    }
    reply.setHeader('content-type', 'application/json').end(JSON.stringify(keys()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    get up() {
      return issuer.up;
    },
    set up(up) {
      issuer.up = up;
    },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    keys,
    get asked() {
      return asked;
    },
    rotate,
    sign(
      claims: Claims = {},
      { expires = '10m', kid = name }: { expires?: string | null; kid?: string | undefined } = {},
    ) {
      const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'ann', scope: 'users:read', ...claims };
      const token = new SignJWT(payload)
        .setProtectedHeader({ alg, ...(kid === '' ? {} : { kid }) })
        .setIssuedAt();
      if (expires !== null) token.setExpirationTime(expires);
      return token.sign(pair.privateKey);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
