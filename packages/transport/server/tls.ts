import { X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import type { Server } from 'node:https';
import { createSecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { ExpectedError } from '../../../src/core/errors.ts';

/** Polling interval of the files, in milliseconds. */
const INTERVAL = 1_000;
/** The files are replaced one after the other, and fit each other once all of them are, in milliseconds. */
const SETTLE = 500;

/** Called for each change: with undefined when the new files are used, else with the reason why the old ones stay. */
type OnCertificate = (problem: Error | undefined, texts: CertificateTexts) => void;

/** The certificate of the doors, which follows its files: it is renewed without a restart. */
export class LiveCertificate implements Disposable {
  readonly #files: CertificateFiles;
  readonly #onChange: OnCertificate;
  readonly #servers = new Map<Server, string>();
  readonly #paths: readonly string[];
  #texts: CertificateTexts;
  #problem: Error | undefined;
  #settling: NodeJS.Timeout | undefined;

  /** Throws CertificateError. */
  constructor(files: CertificateFiles, onChange: OnCertificate) {
    this.#files = files;
    this.#onChange = onChange;
    this.#texts = readCertificate(files);
    this.#paths = [files.cert, files.key, ...files.clientCas.values()];
    // It follows symbolic links, which Kubernetes replaces.
    for (const path of this.#paths) watchFile(path, { interval: INTERVAL, persistent: false }, this.#settle);
    // They may have changed between the start and the first poll.
    this.#settling = setTimeout(this.#readAgain, INTERVAL).unref();
  }

  /** What a server of a door is made with. A door with authorities takes clients with a certificate only. */
  optionsOf(door: string): TlsOptions {
    const asks = this.#texts.clientCas.has(door);
    return { ...this.#contextOf(door), requestCert: asks, rejectUnauthorized: asks };
  }

  /** From now on new connections of a server get the certificate of the moment. */
  serve(server: Server, door: string): void {
    this.#servers.set(server, door);
    server.once('close', () => this.#servers.delete(server));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#settling);
    for (const path of this.#paths) unwatchFile(path, this.#settle);
  }

  #contextOf(door: string): SecureContextOptions {
    const { cert, key, clientCas } = this.#texts;
    const ca = clientCas.get(door);
    return { cert, key, minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) };
  }

  readonly #settle = (): void => {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(this.#readAgain, SETTLE).unref();
  };

  readonly #readAgain = (): void => {
    const before = this.#problem;
    try {
      const texts = readCertificate(this.#files);
      this.#problem = undefined;
      if (isDeepStrictEqual(texts, this.#texts) && before === undefined) return;
      this.#texts = texts;
      for (const [server, door] of this.#servers) server.setSecureContext(this.#contextOf(door));
    } catch (error) {
      this.#problem = error instanceof Error ? error : new Error(String(error));
      if (this.#problem.message === before?.message) return;
    }
    this.#onChange(this.#problem, this.#texts);
  };
}

/** The files of TLS, by the options that name them. */
interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The authorities of client certificates, by the name of what asks for them. */
  readonly clientCas: ReadonlyMap<string, string>;
}

/** What these files hold. */
interface CertificateTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCas: ReadonlyMap<string, string>;
  /** When the certificate expires, in ISO 8601. */
  readonly validTo: string;
}

/** Reads the files and makes sure that TLS works with them. Throws CertificateError, which quotes none of them. */
function readCertificate({ cert, key, clientCas }: CertificateFiles): CertificateTexts {
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

/** A certificate, its key or an authority for clients cannot be used; the start ends with this message. */
class CertificateError extends ExpectedError {
  override readonly name = 'CertificateError';
  readonly code = 'TLS_FILES';
}
