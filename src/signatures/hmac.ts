import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { ExpectedError } from '../core/errors.ts';
import { secretMatcher } from '../core/passwords.ts';
import { headerOf, type Refusal, type RequestHeaders, type Scheme } from './schemes.ts';

interface HmacParams {
  /** The header with the signature, in lower case. */
  readonly header: string;
  readonly algorithm: HmacAlgorithm;
  readonly encoding: 'hex' | 'base64';
  /** The text before the signature in its header, such as `sha256=`. */
  readonly prefix: string;
  /** The header with the time in whole seconds, in lower case; undefined if there is none. */
  readonly timestampHeader: string | undefined;
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
  /** The signed text. */
  readonly template: Template;
}

export function hmac(params: HmacParams): Scheme {
  // Many senders use upper-case digits.
  const hex = (text: string, length: number) => hexBytes(text.toLowerCase(), length);
  return hmacHeader(params, params.encoding === 'hex' ? hex : base64Bytes);
}

/** Like `hmac`; `decode` decodes a signature of `length` bytes, or returns undefined. */
function hmacHeader(
  { header, algorithm, encoding, prefix, timestampHeader, tolerance, template }: HmacParams,
  decode: (text: string, length: number) => Buffer | undefined,
): Scheme {
  return hmacScheme({
    algorithm,
    tolerance: timestampHeader === undefined ? undefined : tolerance,
    template,
    read(headers) {
      const text = headerOf(headers, header);
      if (text === undefined) return 'no-signature';
      if (!text.startsWith(prefix)) return 'malformed-signature';
      const signature = decode(text.slice(prefix.length), hmacLengths[algorithm]);
      if (signature === undefined) return 'malformed-signature';
      return { signatures: [signature], timestamp: timestampHeader && headerOf(headers, timestampHeader) };
    },
    write: (timestamp, signatures) => ({
      ...(timestampHeader !== undefined && { [timestampHeader]: timestamp }),
      [header]: `${prefix}${firstOf(signatures).toString(encoding)}`,
    }),
  });
}

type HmacAlgorithm = 'sha1' | 'sha256' | 'sha512';

/** The length of a signature in bytes. */
export const hmacLengths: Readonly<Record<HmacAlgorithm, number>> = { sha1: 20, sha256: 32, sha512: 64 };

/** The signed bytes: the body between two texts in Latin-1. */
interface SignedBytes {
  readonly before: string;
  readonly body: Uint8Array;
  readonly after: string;
}

interface HmacKeys {
  /** The signatures, in the order of the keys. */
  sign(bytes: SignedBytes): readonly Buffer[];
  /** Whether any presented signature, each of the algorithm's length, matches any key. */
  matches(presented: readonly Buffer[], bytes: SignedBytes): boolean;
}

export function hmacKeys(algorithm: HmacAlgorithm, secrets: readonly Uint8Array[]): HmacKeys {
  const keys = secrets.map((secret) => createSecretKey(secret));
  const sign = ({ before, body, after }: SignedBytes): readonly Buffer[] =>
    keys.map((key) => {
      const hmac = createHmac(algorithm, key);
      if (before !== '') hmac.update(before, 'latin1');
      hmac.update(body);
      if (after !== '') hmac.update(after, 'latin1');
      return hmac.digest();
    });
  return {
    sign,
    matches(presented, bytes) {
      let matches = false;
      // No early exit, so that timing does not reveal which secret matched.
      for (const expected of sign(bytes)) {
        for (const signature of presented) if (timingSafeEqual(expected, signature)) matches = true;
      }
      return matches;
    },
  };
}

/** The values read from the headers of a request. */
interface Presented {
  readonly signatures: readonly Buffer[];
  readonly timestamp?: string | undefined;
}

/** The layout of an HMAC scheme: the signed text and its headers. */
interface HmacLayout {
  readonly algorithm: HmacAlgorithm;
  /** Maximum clock difference in seconds, 0 accepts every time; undefined if requests have no timestamp. */
  readonly tolerance: number | undefined;
  /** The signed text. */
  readonly template: Template;
  read(headers: RequestHeaders): Presented | Refusal;
  /** The headers with these signatures, one per secret. */
  write(timestamp: string, signatures: readonly Buffer[]): Readonly<Record<string, string>>;
}

function hmacScheme({ algorithm, tolerance, template, read, write }: HmacLayout): Scheme {
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

/** Decodes `length` bytes of lower-case hexadecimal digits; undefined for any other text. */
export function hexBytes(text: string, length: number): Buffer | undefined {
  return text.length === 2 * length && /^[0-9a-f]*$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/** Decodes `length` bytes of canonical, padded base64, so that a modified signature never passes. */
export function base64Bytes(text: string, length: number): Buffer | undefined {
  if (text.length !== 4 * Math.ceil(length / 3)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === length && bytes.toString('base64') === text ? bytes : undefined;
}

/** The signed text before and after the body, in Latin-1. */
interface Frame {
  readonly before: string;
  readonly after: string;
}

/** Fills in a template; undefined if one of its headers is missing. */
type Template = (timestamp: string, headers: RequestHeaders) => Frame | undefined;

interface ReadTemplate {
  readonly fill: Template;
  readonly usesTimestamp: boolean;
}

/** `{body}` */
export const bodyAlone: ReadTemplate = { fill: () => ({ before: '', after: '' }), usesTimestamp: false };

/** `{timestamp}.{body}` */
export const timestampAndBody: ReadTemplate = {
  fill: (timestamp) => ({ before: `${timestamp}.`, after: '' }),
  usesTimestamp: true,
};

/** Parses ASCII text with one {body} and any {timestamp} and {header:NAME}; undefined if invalid. */
export function readTemplate(text: string): ReadTemplate | undefined {
  const [before, after, ...more] = text.split('{body}').map(readParts);
  if (before === undefined || after === undefined || more.length > 0) return undefined;
  return {
    fill(timestamp, headers) {
      const filledBefore = before(timestamp, headers);
      const filledAfter = after(timestamp, headers);
      if (filledBefore === undefined || filledAfter === undefined) return undefined;
      return { before: filledBefore, after: filledAfter };
    },
    usesTimestamp: text.includes('{timestamp}'),
  };
}

type Part = (timestamp: string, headers: RequestHeaders) => string | undefined;

/** Parses a text without {body}. */
function readParts(text: string): Part | undefined {
  const parts: Part[] = [];
  // With a capturing group, split returns texts and placeholders alternately.
  for (const [index, piece] of text.split(/\{([^{}]*)\}/).entries()) {
    const name = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(piece)?.[1]?.toLowerCase();
    if (index % 2 === 0) {
      if (!/^[^{}\x80-\uffff]*$/.test(piece)) return undefined;
      parts.push(() => piece);
    } else if (piece === 'timestamp') parts.push((timestamp) => timestamp);
    else if (name !== undefined) parts.push((_timestamp, headers) => headerOf(headers, name));
    else return undefined;
  }
  return (timestamp, headers) => {
    let filled = '';
    for (const part of parts) {
      const value = part(timestamp, headers);
      if (value === undefined) return undefined;
      filled += value;
    }
    return filled;
  };
}

/**
 * The problem of a timestamp (whole seconds since the epoch, in digits) at `now` (milliseconds); undefined if
 * it is valid. `tolerance` is the maximum difference in seconds, inclusive; 0 accepts every time.
 */
export function timestampFault(
  text: string | undefined,
  tolerance: number,
  now: number,
): Refusal | undefined {
  if (text === undefined) return 'no-timestamp';
  // Only the canonical form is accepted, because parsers differ in the other forms they accept.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) return 'malformed-timestamp';
  if (tolerance === 0) return undefined;
  const age = Math.floor(now / 1000) - Number(text);
  if (age > tolerance) return 'too-old';
  return age < -tolerance ? 'too-new' : undefined;
}

/** The problem of an invalid plain-text secret; undefined if it is valid. */
export function textSecretProblem(secret: string): string | undefined {
  if (/^(?!\s)\P{Cc}+(?<!\s)$/u.test(secret)) return undefined;
  return 'must be a text without control characters or spaces at its ends, and not empty';
}

/** The secrets' UTF-8 bytes. Throws UnusableSecretError. */
export function textKeys(secrets: readonly string[]): readonly Uint8Array[] {
  return secrets.map((secret) => {
    const problem = textSecretProblem(secret);
    if (problem !== undefined) throw new UnusableSecretError(problem);
    return Buffer.from(secret);
  });
}

/** The secret that signs if a scheme allows only one signature. Throws UnusableSecretError without one. */
function firstOf<T>(keys: readonly T[]): T {
  const [first] = keys;
  if (first === undefined) throw new UnusableSecretError('that can sign is required; configure one');
  return first;
}

/** The scheme cannot use a secret. The message never contains the secret. */
export class UnusableSecretError extends ExpectedError {
  override readonly name = 'UnusableSecretError';
  readonly code = 'UNUSABLE_SECRET';

  /** `problem` completes "A secret …". */
  constructor(problem: string) {
    super(`A secret ${problem}`);
  }
}

/** A request cannot be signed in its present form. */
export class UnsignableError extends ExpectedError {
  override readonly name = 'UnsignableError';
  readonly code = 'UNSIGNABLE';
}

const GITHUB_HEADER = 'x-hub-signature-256';

const githubSignature = hmacHeader(
  {
    header: GITHUB_HEADER,
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: 'sha256=',
    timestampHeader: undefined,
    tolerance: 0,
    template: bodyAlone.fill,
  },
  hexBytes,
);

/**
 * X-Hub-Signature-256: HMAC-SHA256 over the body alone. Neither the event nor the delivery id is signed and there is
 * no timestamp, so a request can be replayed.
 */
export const github: Scheme = {
  ...githubSignature,
  verifier(secrets) {
    const verifier = githubSignature.verifier(secrets);
    return (headers, now) => {
      // The log distinguishes an outdated sender from a wrong one.
      const sha1Only =
        headerOf(headers, GITHUB_HEADER) === undefined && headerOf(headers, 'x-hub-signature') !== undefined;
      return sha1Only ? 'sha1-only' : verifier(headers, now);
    };
  },
};

/** Slack's v0: HMAC-SHA256 over `v0:{timestamp}:{body}`. */
export function slack(tolerance: number): Scheme {
  return hmacHeader(
    {
      header: 'x-slack-signature',
      algorithm: 'sha256',
      encoding: 'hex',
      prefix: 'v0=',
      timestampHeader: 'x-slack-request-timestamp',
      tolerance,
      template: (timestamp) => ({ before: `v0:${timestamp}:`, after: '' }),
    },
    hexBytes,
  );
}

const STRIPE_HEADER = 'stripe-signature';
const MAX_ITEMS = 32;

/** Stripe-Signature, `t=…,v1=…`: HMAC-SHA256 over `{timestamp}.{body}`, one signature per secret during a rotation. */
export function stripe(tolerance: number): Scheme {
  return hmacScheme({
    algorithm: 'sha256',
    tolerance,
    template: timestampAndBody.fill,
    read: readStripe,
    write(timestamp, signatures) {
      const items = signatures.map((signature) => `,v1=${signature.toString('hex')}`);
      return { [STRIPE_HEADER]: `t=${timestamp}${items.join('')}` };
    },
  });
}

function readStripe(headers: RequestHeaders): Presented | Refusal {
  const text = headerOf(headers, STRIPE_HEADER);
  if (text === undefined) return 'no-signature';
  // Node joins repeated headers with a comma and a space, which the format does not contain.
  if (text.includes(' ')) return 'malformed-signature';
  const items = text.split(',', MAX_ITEMS + 1);
  if (items.length > MAX_ITEMS) return 'too-many-signatures';
  let timestamp: string | undefined;
  const signatures: Buffer[] = [];
  for (const item of items) {
    const [, key, value = ''] = /^([^=]*)=?(.*)$/s.exec(item) ?? [];
    if (key === 't') {
      // With two timestamps it would be unclear which one was signed.
      if (timestamp !== undefined) return 'malformed-timestamp';
      timestamp = value;
    } else if (key === 'v1') {
      const signature = hexBytes(value, hmacLengths.sha256);
      if (signature !== undefined) signatures.push(signature);
    }
  }
  return signatures.length === 0 ? 'malformed-signature' : { timestamp, signatures };
}

const anyBody = () => undefined;

/** The shared secret itself in a header (name in lower case), which does not authenticate the content. */
export function token(header: string): Scheme {
  return {
    verifier(secrets) {
      textKeys(secrets);
      const matches = secretMatcher(secrets);
      return (headers) => {
        const presented = headerOf(headers, header);
        if (presented === undefined) return 'no-token';
        // Node decodes headers as Latin-1, but most senders encode a non-ASCII secret as UTF-8.
        const matched = matches(presented) || matches(Buffer.from(presented, 'latin1').toString());
        return matched ? anyBody : 'wrong-token';
      };
    },
    signer(secrets) {
      const value = Buffer.from(firstOf(textKeys(secrets))).toString('latin1');
      return () => ({ [header]: value });
    },
  };
}
