import { hash, timingSafeEqual } from 'node:crypto';
import { ExpectedError } from '../../core/expected-error.ts';

/** A configured secret is empty and would admit everybody. */
export class EmptySecretError extends ExpectedError {
  override readonly name = 'EmptySecretError';
  readonly code = 'EMPTY_SECRET';

  constructor() {
    super('A configured secret is empty. Give it a value, or remove it to leave the door unsecured.');
  }
}

/** The SHA-256 of a text's UTF-8 bytes: secrets of any length become comparable in constant time. */
export function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/**
 * Compares a presented secret with the configured ones, as text, in a time that depends on none of them. Without a
 * secret nothing matches; an empty one throws EmptySecretError.
 * Header values come as Latin-1: decode one as UTF-8 before presenting it where secrets may hold more.
 */
export function secretMatcher(secrets: readonly string[]): (presented: string | undefined) => boolean {
  if (secrets.includes('')) throw new EmptySecretError();
  const configured = secrets.map(digestOf);
  return (presented) => {
    if (presented === undefined) return false;
    const digest = digestOf(presented);
    let matches = false;
    // No early exit: which one matched must not show.
    for (const known of configured) if (timingSafeEqual(known, digest)) matches = true;
    return matches;
  };
}
