import { attemptSource } from '../../src/core/addresses.ts';

/** Who makes a request, as far as its credentials say. */
export interface Caller {
  /** What the credentials are: a token of the configuration or the database, one of an identity provider, a user and password. */
  readonly kind: 'token' | 'jwt' | 'user';
  /** The name of the token or the user; the subject of an identity provider's token. */
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
  /** What an identity provider says in its token. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** A caller whose credentials are good until they expire or are revoked. */
export class KnownCaller implements Caller {
  readonly kind: Caller['kind'];
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
  declare readonly claims?: NonNullable<Caller['claims']>;
  /** Names the caller among all kinds; credentials that replace others of the same name have the same. */
  readonly id: string;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The last use that was noted, in milliseconds since the epoch; 0 for none. */
  usedAt = 0;
  #isRevoked = false;

  constructor(
    { kind, name, scopes, claims }: Caller,
    expiresAt = Number.POSITIVE_INFINITY,
    id = `${kind}:${name}`,
  ) {
    this.kind = kind;
    this.name = name;
    this.scopes = scopes;
    if (claims !== undefined) this.claims = claims;
    this.id = id;
    this.expiresAt = expiresAt;
  }

  /** From now on the credentials are not good any more, for connections that were opened with them too. */
  revoke(): void {
    this.#isRevoked = true;
  }

  /** Whether the credentials are good at a time. */
  isValidAt(now: number): boolean {
    return !this.#isRevoked && now < this.expiresAt;
  }
}

/** What rates and shares are counted by: the caller where the credentials tell, otherwise the network of the client. */
export function clientKey({
  caller,
  client,
}: {
  readonly caller: KnownCaller | undefined;
  readonly client: string;
}): string {
  return caller?.id ?? attemptSource(client);
}
