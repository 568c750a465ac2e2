import { type HmacAlgorithm, hmacKeys } from './hmac-keys.ts';
import type { Refusal, RequestHeaders, Scheme } from './scheme.ts';
import { UnsignableError } from './scheme-error.ts';
import type { Template } from './template.ts';
import { firstOf, textKeys } from './text-secret.ts';
import { timestampFault } from './timestamp.ts';

/** What the headers of a request say. */
export interface Presented {
  readonly signatures: readonly Buffer[];
  readonly timestamp?: string | undefined;
}

/** A scheme of HMACs: what they sign, and how they stand in the headers. */
export interface HmacLayout {
  readonly algorithm: HmacAlgorithm;
  /** Maximum clock difference in seconds, 0 accepts every time; undefined: requests have no timestamp. */
  readonly tolerance: number | undefined;
  /** What is signed. */
  readonly template: Template;
  read(headers: RequestHeaders): Presented | Refusal;
  /** The headers with these signatures, one per secret. */
  write(timestamp: string, signatures: readonly Buffer[]): Readonly<Record<string, string>>;
}

/** Makes a scheme of its layout. */
export function hmacScheme({ algorithm, tolerance, template, read, write }: HmacLayout): Scheme {
  return {
    verifier(secrets) {
      const keys = hmacKeys(algorithm, textKeys(secrets));
      return (headers, now) => {
        const presented = read(headers);
        if (typeof presented === 'string') return presented;
        const { signatures, timestamp } = presented;
        const fault = tolerance === undefined ? undefined : timestampFault(timestamp, tolerance, now);
        if (fault !== undefined) return fault;
        const frame = template(timestamp ?? '', headers);
        if (frame === undefined) return 'no-signed-header';
        return (body) => (keys.matches(signatures, { ...frame, body }) ? undefined : 'wrong-signature');
      };
    },
    signer(secrets) {
      const keys = hmacKeys(algorithm, textKeys(secrets));
      firstOf(secrets);
      return ({ timestamp, headers = {}, body }) => {
        const frame = template(String(timestamp), headers);
        if (frame === undefined) throw new UnsignableError('A signed header is missing; set it');
        return write(String(timestamp), keys.sign({ ...frame, body }));
      };
    },
  };
}
