import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { UnusableSecretError } from './scheme-error.ts';

/** A key of Standard Webhooks: shared by both sides (v1), or one of an Ed25519 pair (v1a). */
export type StandardKey =
  | { readonly kind: 'shared'; readonly secret: Uint8Array }
  | { readonly kind: 'pair'; readonly publicKey: KeyObject; readonly privateKey: KeyObject | undefined };

/** Why a text is not a valid key; undefined when it is. */
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

/** Parses a key, or says why it is none. */
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

function publicKeyOf(bytes: Buffer): KeyObject {
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
