import { createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** A certificate and its key, in PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), body]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), body]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'));

function nameOf(name: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))));
}

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(`${date.toISOString().replace(/\D/g, '').slice(0, 14)}Z`));
}

function extension(id: string, critical: boolean, value: Uint8Array): Buffer {
  const flag = critical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...flag, der(0x04, value));
}

/**
 * Signs a certificate for localhost and 127.0.0.1 by another one; by itself without one, as an authority is. Only
 * a certificate with an issuer may have a key of another kind.
 */
export function makeCertificate(
  name: string,
  issuer?: TestCertificate,
  { publicKey, privateKey }: KeyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' }),
): TestCertificate {
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const constraints = issuer === undefined ? sequence(der(0x01, Buffer.from([0xff]))) : sequence();
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    nameOf(issuer?.name ?? name),
    sequence(time(new Date(Date.now() - 3_600_000)), time(new Date(Date.now() + 86_400_000))),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension('551d13', true, constraints), extension('551d11', false, names))),
  );
  const signature = createSign('sha256')
    .update(body)
    .sign(issuer?.privateKey ?? privateKey);
  const bytes = sequence(body, ECDSA_SHA256, der(0x03, Buffer.from([0]), signature));
  const lines = bytes.toString('base64').replace(/(.{64})/g, '$1\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    name,
    privateKey,
  };
}

/** Writes a certificate and its key into a folder; gives the environment of a service that uses them. */
export async function writeCertificate(folder: string, { cert, key }: TestCertificate) {
  const env = { TLS_CERT: join(folder, 'cert.pem'), TLS_KEY: join(folder, 'key.pem') };
  await Promise.all([writeFile(env.TLS_CERT, cert), writeFile(env.TLS_KEY, key)]);
  return env;
}
