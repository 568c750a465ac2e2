import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { CertificateError } from './certificate-error.ts';

/** The files of TLS, by the options that name them. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The authorities of client certificates, by the name of what asks for them. */
  readonly clientCas: ReadonlyMap<string, string>;
}

/** What these files hold. */
export interface CertificateTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCas: ReadonlyMap<string, string>;
  /** When the certificate expires, in ISO 8601. */
  readonly validTo: string;
}

/** Reads the files and makes sure that TLS works with them. Throws CertificateError, which quotes none of them. */
export function readCertificate({ cert, key, clientCas }: CertificateFiles): CertificateTexts {
  const texts = {
    cert: read('certificate', cert),
    key: read('key', key),
    clientCas: new Map(Array.from(clientCas, ([name, path]) => [name, read('client authority', path)])),
  };
  try {
    createSecureContext({ cert: texts.cert, key: texts.key });
  } catch (error) {
    throw new CertificateError(`TLS works with no such pair: ${cert} and ${key} (${codeOf(error)})`);
  }
  for (const [name, ca] of texts.clientCas) {
    // OpenSSL passes over what is no certificate, and then nobody could log in.
    if (certificatesIn(ca).length === 0) {
      throw new CertificateError(`${clientCas.get(name)} holds no certificate of a client authority`);
    }
  }
  return { ...texts, validTo: new X509Certificate(texts.cert).validToDate.toISOString() };
}

function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}

function read(what: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CertificateError(`the TLS ${what} ${path} cannot be read (${codeOf(error)})`);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
}
