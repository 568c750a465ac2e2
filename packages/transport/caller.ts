import { attemptSource } from '../../src/core/addresses.ts';

/** The caller of a request, as identified by its credentials. */
export interface Caller {
  /**
   * The kind of credentials: a configured or stored token, an identity provider's token, or a user and
   * password.
   */
  readonly kind: 'token' | 'jwt' | 'user';
  /** The name of the token or user, or the subject of an identity provider's token. */
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
  /** The claims of an identity provider's token. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** A caller whose credentials are valid until they expire or are revoked. */
export class KnownCaller implements Caller {
  readonly kind: Caller['kind'];
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
  declare readonly claims?: NonNullable<Caller['claims']>;
  /**
   * Identifies the caller across all kinds; it stays the same when credentials are replaced under the same
   * name.
   */
  readonly id: string;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The last recorded use, in milliseconds since the epoch; 0 if never. */
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

  /** Revokes the credentials, also for connections that were opened with them. */
  revoke(): void {
    this.#isRevoked = true;
  }

  /** Whether the credentials are valid at a time, in milliseconds since the epoch. */
  isValidAt(now: number): boolean {
    return !this.#isRevoked && now < this.expiresAt;
  }

  /**
   * The key that rates and shares are counted by: the caller if authenticated, otherwise the client's network.
   */
  static keyOf({
    caller,
    client,
  }: {
    readonly caller: KnownCaller | undefined;
    readonly client: string;
  }): string {
    return caller?.id ?? attemptSource(client);
  }
}
