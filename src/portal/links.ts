import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { isRecord } from '../core/json.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';

/** The longest time that a link is valid, in milliseconds. */
const MAX_LINK_TIME = 24 * 3_600_000;

/** A link opens the portal for this tenant. */
interface PortalPass {
  readonly tenant: string;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * Makes and reads the tokens of links to the portal: `v1.<tenant and end>.<signature>`, signed with a key that is derived
 * from the secret of the database, so every process on it reads them.
 */
export class PortalLinks {
  readonly #secret: () => MaybePromise<Uint8Array>;
  #key: Buffer | undefined;

  /** `secret` returns a secret that all processes on the database share. */
  constructor(secret: () => MaybePromise<Uint8Array>) {
    this.#secret = secret;
  }

  /** The token of a link. Rejects as the store does. */
  create({ tenant, expiresAt }: PortalPass): MaybePromise<string> {
    return whenReady(this.#readKey(), (key) => {
      const payload = Buffer.from(JSON.stringify([tenant, expiresAt])).toString('base64url');
      return `v1.${payload}.${signature(key, payload).toString('base64url')}`;
    });
  }

  /** The pass of a token at `now`; undefined for any text that is not a valid token. Rejects as the store does. */
  read(token: string, now: number): MaybePromise<PortalPass | undefined> {
    const [version, payload = '', signed = '', ...more] = token.split('.');
    if (version !== 'v1' || more.length > 0 || token.length > 1_000) return undefined;
    return whenReady(this.#readKey(), (key) => {
      const given = Buffer.from(signed, 'base64url');
      const expected = signature(key, payload);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      const [tenant, expiresAt] = JSON.parse(Buffer.from(payload, 'base64url').toString());
      return now < expiresAt ? { tenant, expiresAt } : undefined;
    });
  }

  #readKey(): MaybePromise<Buffer> {
    return (
      this.#key ??
      whenReady(this.#secret(), (secret) => {
        this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'portico portal', 32));
        return this.#key;
      })
    );
  }
}

function signature(key: Buffer, payload: string): Buffer {
  return createHmac('sha256', key).update(payload).digest();
}

/** How long a link is valid, in milliseconds, from the body of a request; a text names the problem. */
export function linkTimeOf(body: unknown): number | string {
  const { minutes = 60 } = isRecord(body) ? body : {};
  const time = Number(minutes) * 60_000;
  if (typeof minutes === 'number' && time > 0 && time <= MAX_LINK_TIME) return time;
  return `minutes must be a number above 0, at most ${MAX_LINK_TIME / 60_000}`;
}
