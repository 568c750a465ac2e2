import { type HmacAlgorithm, hmacKeys, hmacLengths } from './hmac-keys.ts';
import {
  accepted,
  headerOf,
  type RequestHeaders,
  refused,
  type Scheme,
  type Signer,
  type Verifier,
} from './scheme.ts';
import { UnsignableError } from './scheme-error.ts';
import type { Template } from './template.ts';
import { firstOf, textKeys, textSecretProblem } from './text-secret.ts';
import { timestampFault } from './timestamp.ts';

/** The layout of an HMAC in one header. */
export interface HmacParams {
  /** The header with the signature, in lower case. */
  readonly header: string;
  readonly algorithm: HmacAlgorithm;
  readonly encoding: 'hex' | 'base64';
  /** The text before the signature in its header, such as `sha256=`. */
  readonly prefix: string;
  /** The header with the time in whole seconds, in lower case; undefined when there is none. */
  readonly timestampHeader: string | undefined;
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
  /** What is signed. */
  readonly template: Template;
}

/** A scheme with one HMAC in one header. */
export interface HmacHeader extends HmacParams {
  /** Decodes a signature of `length` bytes; undefined when it is malformed. */
  decode(text: string, length: number): Buffer | undefined;
}

/** Makes a scheme of the layout that its parameters give. */
export function hmacScheme<Params>(specOf: (params: Params) => HmacHeader): Scheme<Params> {
  return {
    secretProblem: textSecretProblem,
    verifier: (secrets, params) => verifierOf(secrets, specOf(params)),
    signer: (secrets, params) => signerOf(secrets, specOf(params)),
  };
}

function verifierOf(secrets: readonly string[], spec: HmacHeader): Verifier {
  const { header, algorithm, prefix, timestampHeader, tolerance, template } = spec;
  const keys = hmacKeys(algorithm, textKeys(secrets));
  const length = hmacLengths[algorithm];
  return (headers, now) => {
    const text = headerOf(headers, header);
    if (text === undefined) return refused('no-signature');
    const signature = text.startsWith(prefix) ? spec.decode(text.slice(prefix.length), length) : undefined;
    if (signature === undefined) return refused('malformed-signature');
    let timestamp = '';
    if (timestampHeader !== undefined) {
      const sent = headerOf(headers, timestampHeader);
      const fault = timestampFault(sent, tolerance, now);
      if (fault !== undefined) return refused(fault);
      timestamp = sent ?? '';
    }
    const frame = template(timestamp, headers);
    if (frame === undefined) return refused('no-signed-header');
    return (body) => (keys.matches([signature], { ...frame, body }) ? accepted : refused('wrong-signature'));
  };
}

function signerOf(secrets: readonly string[], spec: HmacHeader): Signer {
  const { header, algorithm, encoding, prefix, timestampHeader, template } = spec;
  const keys = hmacKeys(algorithm, [firstOf(textKeys(secrets))]);
  return (request) => {
    const timestamp = String(request.timestamp);
    const headers: RequestHeaders = request.headers ?? {};
    const frame = template(timestamp, headers);
    if (frame === undefined) throw new UnsignableError('A signed header is missing; set it');
    const signature = firstOf(keys.sign({ ...frame, body: request.body }));
    return {
      ...(timestampHeader === undefined ? {} : { [timestampHeader]: timestamp }),
      [header]: `${prefix}${signature.toString(encoding)}`,
    };
  };
}
