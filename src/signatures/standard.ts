import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signEd25519,
  verify as verifyEd25519,
} from 'node:crypto';
import {
  base64Bytes,
  hmacKeys,
  hmacLengths,
  timestampFault,
  UnsignableError,
  UnusableSecretError,
} from './hmac.ts';
import { headerOf, type Refusal, type Scheme } from './schemes.ts';

interface StandardParams {
  /** The prefix of the three header names, in lower case: `webhook`, or `svix` for some senders. */
  readonly headerPrefix: string;
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
}

/** Bounds the work of an unauthenticated request: an Ed25519 check costs as much as thirty HMACs. */
const MAX_SIGNATURES = 16;
const ED25519_LENGTH = 64;
/** Visible ASCII without the dot, which separates the signed parts. */
const idPattern = /^[!-\-/-~]{1,256}$/;

/** Standard Webhooks 1.0.0: `{id}.{timestamp}.{body}` signed with HMAC-SHA256 (v1) or Ed25519 (v1a). */
export function standard({ headerPrefix, tolerance }: StandardParams): Scheme {
  const idHeader = `${headerPrefix}-id`;
  const timestampHeader = `${headerPrefix}-timestamp`;
  const signatureHeader = `${headerPrefix}-signature`;
  return {
    verifier(secrets) {
      const keys = secrets.map(readStandardKey);
      const shared = sharedKeys(keys);
      const publicKeys = keys.flatMap((key) => (key.kind === 'pair' ? key.publicKey : []));
      return (headers, now) => {
        const text = headerOf(headers, signatureHeader);
        if (text === undefined) return 'no-signature';
        const id = headerOf(headers, idHeader);
        if (id === undefined) return 'no-id';
        if (!idPattern.test(id)) return 'malformed-id';
        const timestamp = headerOf(headers, timestampHeader);
        const fault = timestampFault(timestamp, tolerance, now);
        if (fault !== undefined) return fault;
        const signatures = readSignatures(text);
        if (typeof signatures === 'string') return signatures;
        const before = `${id}.${timestamp}.`;
        return (body) => {
          let matches = shared.matches(signatures.v1, { before, body, after: '' });
          if (signatures.v1a.length > 0 && publicKeys.length > 0) {
            const signed = Buffer.concat([Buffer.from(before), body]);
            for (const key of publicKeys) {
              for (const each of signatures.v1a) if (verifyEd25519(null, signed, key, each)) matches = true;
            }
          }
          return matches ? undefined : 'wrong-signature';
        };
      };
    },

    signer(secrets) {
      const keys = secrets.map(readStandardKey);
      const shared = sharedKeys(keys);
      const privateKeys = keys.flatMap((key) => (key.kind === 'pair' ? (key.privateKey ?? []) : []));
      if (privateKeys.length === 0 && keys.every((key) => key.kind !== 'shared'))
        throw new UnusableSecretError('that can sign is required: one that begins with whsec_ or whsk_');
      return ({ id, timestamp, body }) => {
        if (!idPattern.test(id))
          throw new UnsignableError('The id must be 1 to 256 visible ASCII characters other than "."');
        const before = `${id}.${timestamp}.`;
        const signed = privateKeys.length === 0 ? body : Buffer.concat([Buffer.from(before), body]);
        const signatures = [
          ...shared.sign({ before, body, after: '' }).map((each) => `v1,${each.toString('base64')}`),
          ...privateKeys.map((key) => `v1a,${signEd25519(null, signed, key).toString('base64')}`),
        ];
        return {
          [idHeader]: id,
          [timestampHeader]: String(timestamp),
          [signatureHeader]: signatures.join(' '),
        };
      };
    },
  };
}

function sharedKeys(keys: readonly StandardKey[]) {
  return hmacKeys(
    'sha256',
    keys.flatMap((key) => (key.kind === 'shared' ? key.secret : [])),
  );
}

interface Signatures {
  readonly v1: readonly Buffer[];
  readonly v1a: readonly Buffer[];
}

/** Parses the signatures of both versions; other versions are ignored, as the specification demands. */
function readSignatures(text: string): Signatures | Refusal {
  // Node joins repeated headers with a comma and a space, which the format does not contain.
  if (text.includes(', ')) return 'malformed-signature';
  const items = text.split(' ', MAX_SIGNATURES + 1);
  if (items.length > MAX_SIGNATURES) return 'too-many-signatures';
  const read = (prefix: string, length: number): readonly Buffer[] =>
    items.flatMap((item) =>
      item.startsWith(prefix) ? (base64Bytes(item.slice(prefix.length), length) ?? []) : [],
    );
  const v1 = read('v1,', hmacLengths.sha256);
  const v1a = read('v1a,', ED25519_LENGTH);
  return v1.length + v1a.length === 0 ? 'malformed-signature' : { v1, v1a };
}

/** A key of Standard Webhooks: shared by both sides (v1), or one of an Ed25519 pair (v1a). */
type StandardKey =
  | { readonly kind: 'shared'; readonly secret: Uint8Array }
  | { readonly kind: 'pair'; readonly publicKey: KeyObject; readonly privateKey: KeyObject | undefined };

/** The problem of an invalid key; undefined if the key is valid. */
export function standardKeyProblem(text: string): string | undefined {
  const read = readKey(text);
  return typeof read === 'string' ? read : undefined;
}

/** Parses a key. Throws UnusableSecretError. */
export function readStandardKey(text: string): StandardKey {
  const read = readKey(text);
  if (typeof read === 'string') throw new UnusableSecretError(read);
  return read;
}

/** Parses a key; returns the problem of an invalid one. */
function readKey(text: string): StandardKey | string {
  const [, kind, encoded = ''] = /^(whsec_|whpk_|whsk_)(.*)$/s.exec(text) ?? [];
  const bytes = keyBytes(encoded);
  const length = bytes?.length ?? 0;
  if (kind === 'whsec_') {
    if (bytes !== undefined && length >= 24 && length <= 64) return { kind: 'shared', secret: bytes };
    return 'must be whsec_ and 24 to 64 bytes in base64';
  }
  if (kind === 'whpk_') {
    if (bytes === undefined || length !== 32) return 'must be whpk_ and 32 bytes in base64';
    return { kind: 'pair', publicKey: publicKeyOf(bytes), privateKey: undefined };
  }
  if (kind === 'whsk_') {
    if (bytes === undefined || (length !== 32 && length !== 64))
      return 'must be whsk_ and 32 or 64 bytes in base64';
    return readPrivate(bytes);
  }
  return 'must begin with whsec_, whpk_ or whsk_';
}

/** A private key, optionally followed by its public key. */
function readPrivate(bytes: Buffer): StandardKey | string {
  const privateKey = createPrivateKey({
    // The header of an Ed25519 key in PKCS #8 (RFC 8410, 7).
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), bytes.subarray(0, 32)]),
    format: 'der',
    type: 'pkcs8',
  });
  const publicKey = createPublicKey(privateKey);
  if (bytes.length === 64 && !publicKey.equals(publicKeyOf(bytes.subarray(32))))
    return 'must be whsk_ and a private key with the public key that belongs to it';
  return { kind: 'pair', publicKey, privateKey };
}

export function publicKeyOf(bytes: Buffer): KeyObject {
  // The header of an Ed25519 key as SubjectPublicKeyInfo (RFC 8410, 4).
  const key = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes]);
  return createPublicKey({ key, format: 'der', type: 'spki' });
}

/** Decodes base64; keys are distributed with and without padding. */
function keyBytes(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  const encoded = bytes.toString('base64');
  return text === encoded || text === encoded.replace(/=+$/, '') ? bytes : undefined;
}
