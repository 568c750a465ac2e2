import { validateHeaderValue } from 'node:http';
import { UnsignableError } from '../../webhook/schemes/scheme-error.ts';
import { signDelivery, type UnsignedDelivery } from '../../webhook/sources/sign-delivery.ts';
import { misuse } from './misuse.ts';
import type { SendAs } from './sender-of.ts';

/** All headers of a delivery, signed with the current time. Throws UsageError when it cannot be signed or sent. */
export function signedHeaders(
  { layout, sign }: SendAs,
  delivery: Omit<UnsignedDelivery, 'timestamp'>,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(Date.now() / 1_000);
  try {
    const headers = signDelivery(layout, sign, { ...delivery, timestamp });
    for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value);
    return headers;
  } catch (error) {
    if (error instanceof UnsignableError) throw misuse(`${error.message} (with --header or --id)`);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_INVALID_CHAR') throw error;
    throw misuse(message);
  }
}

/** Why a receiver gave no answer, in one sentence. */
export function noAnswer({ origin }: URL, error: unknown): string {
  const { code, message, name } = innermost(error) as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') {
    return `Nothing listens at ${origin}; start it with "portico serve", or say --url for where it is.`;
  }
  if (name === 'TimeoutError') return `${origin} did not answer within 30 seconds.`;
  return `${origin} gave no answer: ${message || code}.`;
}

/** The cause: connecting to several addresses of a name fails with an error for each. */
function innermost(error: unknown): unknown {
  if (error instanceof AggregateError) return innermost(error.errors[0]);
  const { name, cause } = Object(error) as Error;
  return name === 'AbortError' && cause !== undefined ? cause : error;
}
