import { X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import type { Server } from 'node:https';
import { createSecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { ExpectedError } from '../../../src/core/errors.ts';

/** Polling interval of the certificate files, in milliseconds. */
const INTERVAL = 1_000;
/**
 * How long to wait after a change, in milliseconds: the files are replaced one after the other and match only
 * once all are.
 */
const SETTLE = 500;

/**
 * Called after each change: with undefined if the new files are in use, otherwise with the reason why the old
 * ones are kept.
 */
type OnCertificate = (problem: Error | undefined, texts: CertificateTexts) => void;

/** The certificate of the doors. It follows its files, so it is renewed without a restart. */
export class LiveCertificate implements Disposable {
  readonly #files: CertificateFiles;
  readonly #onChange: OnCertificate;
  readonly #servers = new Map<Server, string>();
  readonly #paths: readonly string[];
  #texts: CertificateTexts;
  #problem: Error | undefined;
  #settling: NodeJS.Timeout | undefined;

  /** Reads the files and starts to watch them. Throws CertificateError. */
  constructor(files: CertificateFiles, onChange: OnCertificate) {
    this.#files = files;
    this.#onChange = onChange;
    this.#texts = readCertificate(files);
    this.#paths = [files.cert, files.key, ...files.clientCas.values()];
    // Polling follows symbolic links, which Kubernetes replaces on renewal.
    for (const path of this.#paths) watchFile(path, { interval: INTERVAL, persistent: false }, this.#settle);
    // The files may have changed between this read and the first poll.
    this.#settling = setTimeout(this.#readAgain, INTERVAL).unref();
  }

  /** The TLS options of a door's server. A door with client authorities requires a client certificate. */
  optionsOf(door: string): TlsOptions {
    const asks = this.#texts.clientCas.has(door);
    return { ...this.#contextOf(door), requestCert: asks, rejectUnauthorized: asks };
  }

  /** Gives a server the current certificate for new connections from now on. */
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

/** The paths of the TLS files. */
interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The authorities of client certificates, by the name of the door that requires them. */
  readonly clientCas: ReadonlyMap<string, string>;
}

/** The contents of the TLS files. */
interface CertificateTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCas: ReadonlyMap<string, string>;
  /** When the certificate expires, in ISO 8601. */
  readonly validTo: string;
}

/**
 * Reads the files and checks that TLS accepts them. Throws CertificateError, whose message quotes no
 * contents.
 */
function readCertificate({ cert, key, clientCas }: CertificateFiles): CertificateTexts {
  const texts = {
    cert: read('certificate', cert),
    key: read('key', key),
    clientCas: new Map(Array.from(clientCas, ([name, path]) => [name, read('client authority', path)])),
  };
  try {
    createSecureContext({ cert: texts.cert, key: texts.key });
  } catch (error) {
    throw new CertificateError(
      `TLS cannot use the certificate ${cert} with the key ${key} (${codeOf(error)})`,
    );
  }
  for (const [name, ca] of texts.clientCas) {
    // OpenSSL ignores invalid certificates; without any valid one, no client could connect.
    if (certificatesIn(ca).length === 0) {
      throw new CertificateError(`${clientCas.get(name)} holds no client authority certificate`);
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

/** A certificate, key or client authority is unusable; the start fails with this message. */
class CertificateError extends ExpectedError {
  override readonly name = 'CertificateError';
  readonly code = 'TLS_FILES';
}
