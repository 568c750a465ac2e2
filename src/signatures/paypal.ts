import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
  X509Certificate,
} from 'node:crypto';
import { get } from 'node:https';
import { crc32 } from 'node:zlib';
import { timestampFault, UnusableSecretError } from './hmac.ts';
import { type AnyScheme, headerOf, type Refusal } from './schemes.ts';

/** Returns the public key of the certificate at a URL; undefined without a valid one. */
type CertificateKeys = (url: string) => Promise<KeyObject | undefined>;

interface PayPalParams {
  /** Maximum clock difference in seconds; 0 accepts every time. */
  readonly tolerance: number;
  readonly certificates?: CertificateKeys;
}

/** The certificate's URL in requests that a configured private key has signed. */
const TEST_KEY_URL = 'urn:portico:test-key';
const SHAPE = 'must be the ID of the webhook, or a private RSA key in PEM for tests';

/**
 * PayPal's signature: SHA256withRSA over `{transmission id}|{transmission time}|{webhook ID}|{CRC-32 of the
 * body}`, with the key of the certificate at PAYPAL-CERT-URL. The secrets are the IDs of the webhook, and for
 * tests a private key that signs in PayPal's place.
 */
export function paypal({ tolerance, certificates = certificatesOfPayPal() }: PayPalParams): AnyScheme {
  return {
    verifier(secrets) {
      const { ids, keys } = readSecrets(secrets);
      const testKeys = keys.map((key) => createPublicKey(key));
      return (headers, now) => {
        const signature = signatureOf(headerOf(headers, 'paypal-transmission-sig'));
        if (typeof signature === 'string') return signature;
        const algorithm = headerOf(headers, 'paypal-auth-algo');
        if (algorithm !== 'SHA256withRSA') return 'malformed-signature';
        const id = headerOf(headers, 'paypal-transmission-id');
        if (id === undefined) return 'no-id';
        if (!/^[\w-]{1,100}$/.test(id)) return 'malformed-id';
        const time = headerOf(headers, 'paypal-transmission-time');
        const fault = timestampFault(secondsOf(time), tolerance, now);
        if (fault !== undefined) return fault;
        const url = headerOf(headers, 'paypal-cert-url') ?? '';
        const isTest = url === TEST_KEY_URL && testKeys.length > 0;
        if (!isTest && !isCertificateUrl(url)) return 'wrong-certificate-url';
        const check = (body: Uint8Array, candidates: readonly KeyObject[]): Refusal | undefined => {
          const sum = crc32(body);
          const matches = ids.some((webhook) => {
            const signed = Buffer.from(`${id}|${time}|${webhook}|${sum}`);
            return candidates.some((each) => verify('sha256', signed, each, signature));
          });
          return matches ? undefined : 'wrong-signature';
        };
        return (body) =>
          isTest
            ? check(body, testKeys)
            : certificates(url).then((key) => (key === undefined ? 'no-certificate' : check(body, [key])));
      };
    },
    signer(secrets) {
      const { ids, keys } = readSecrets(secrets);
      const [webhook] = ids;
      const [key] = keys;
      if (key === undefined || webhook === undefined) {
        throw new UnusableSecretError(
          'that can sign is required: beside the ID of the webhook, a private RSA key in PEM',
        );
      }
      return ({ id, timestamp, body }) => {
        const time = new Date(timestamp * 1_000).toISOString();
        const signed = Buffer.from(`${id}|${time}|${webhook}|${crc32(body)}`);
        return {
          'paypal-auth-algo': 'SHA256withRSA',
          'paypal-cert-url': TEST_KEY_URL,
          'paypal-transmission-id': id,
          'paypal-transmission-sig': sign('sha256', signed, key).toString('base64'),
          'paypal-transmission-time': time,
        };
      };
    },
  };
}

/** The problem of a secret that this scheme cannot use; undefined if it is valid. */
export function paypalSecretProblem(secret: string): string | undefined {
  return readSecret(secret) === undefined ? SHAPE : undefined;
}

/** An ID of a webhook, or a private key; undefined for anything else. */
function readSecret(secret: string): string | KeyObject | undefined {
  if (/^[A-Za-z0-9-]{1,64}$/.test(secret)) return secret;
  try {
    const key = createPrivateKey(secret);
    return key.asymmetricKeyType === 'rsa' ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Throws UnusableSecretError. */
function readSecrets(secrets: readonly string[]) {
  const read = secrets.map((secret) => {
    const found = readSecret(secret);
    if (found === undefined) throw new UnusableSecretError(SHAPE);
    return found;
  });
  return {
    ids: read.filter((each) => typeof each === 'string'),
    keys: read.filter((each) => typeof each !== 'string'),
  };
}

/** Decodes canonical base64 of the length of an RSA signature. */
function signatureOf(text: string | undefined): Buffer | Refusal {
  if (text === undefined) return 'no-signature';
  if (text.length > 1_400) return 'malformed-signature';
  const bytes = Buffer.from(text, 'base64');
  return bytes.length > 0 && bytes.toString('base64') === text ? bytes : 'malformed-signature';
}

/** A time in ISO 8601 as whole seconds in digits. */
function secondsOf(time: string | undefined): string | undefined {
  if (time === undefined) return undefined;
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(time);
  // timestampFault refuses a text that has no digits.
  return isTime ? String(Math.floor(Date.parse(time) / 1_000)) : '';
}

const HOSTS = ['api.paypal.com', 'api-m.paypal.com', 'api.sandbox.paypal.com', 'api-m.sandbox.paypal.com'];

/** Whether PayPal publishes certificates at this URL. The sender chooses it, so everything else is refused. */
function isCertificateUrl(text: string): boolean {
  const found = /^https:\/\/([a-z.-]+)\/v1\/notifications\/certs\/CERT-[0-9A-Za-z-]{1,100}$/.exec(text);
  return found?.[1] !== undefined && HOSTS.includes(found[1]);
}

/** Time limit of one download, in milliseconds. */
const TIMEOUT = 5_000;
const MAX_BYTES = 64 * 1_024;
/** Kept certificates; PayPal uses a handful. */
const MAX_KEPT = 16;
/** Downloads within a minute: a sender without a valid signature can cause them. */
const MAX_DOWNLOADS = 10;
const MINUTE = 60_000;

/** Downloads certificates from PayPal over TLS, and keeps their keys while they are valid. */
function certificatesOfPayPal(): CertificateKeys {
  return certificateKeys(download);
}

/** The keys of certificates that `load` reads as PEM, kept while they are valid; `now` is the clock. */
export function certificateKeys(
  load: (url: string) => Promise<string>,
  now: () => number = Date.now,
): CertificateKeys {
  const kept = new Map<string, { readonly key: KeyObject; readonly until: number }>();
  const loading = new Map<string, Promise<KeyObject | undefined>>();
  let downloads = 0;
  let minute = 0;

  async function loaded(url: string): Promise<KeyObject | undefined> {
    try {
      const certificate = new X509Certificate(await load(url));
      const until = certificate.validToDate.getTime();
      const { publicKey: key, subject, validFromDate } = certificate;
      if (now() < validFromDate.getTime() || now() > until || key.asymmetricKeyType !== 'rsa')
        return undefined;
      if (!/^CN=(?:[\w-]+\.)*paypal\.com$/m.test(subject)) return undefined;
      const [oldest] = kept.keys();
      if (kept.size >= MAX_KEPT && oldest !== undefined) kept.delete(oldest);
      kept.set(url, { key, until });
      return key;
    } catch {
      return undefined;
    } finally {
      loading.delete(url);
    }
  }

  return async (url) => {
    const known = kept.get(url);
    if (known !== undefined && now() <= known.until) return known.key;
    const running = loading.get(url);
    if (running !== undefined) return running;
    if (now() - minute >= MINUTE) {
      minute = now();
      downloads = 0;
    }
    if (downloads >= MAX_DOWNLOADS) return undefined;
    downloads++;
    const started = loaded(url);
    loading.set(url, started);
    return started;
  };
}

/** The text at a URL; rejects if the server answers with anything but a 200 of `MAX_BYTES`. Follows nothing. */
function download(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { signal: AbortSignal.timeout(TIMEOUT), agent: false }, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      if (response.statusCode !== 200) {
        request.destroy(new Error(`status ${response.statusCode}`));
        return;
      }
      response.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > MAX_BYTES) request.destroy(new Error('too long'));
        else pieces.push(piece);
      });
      response.on('end', () => resolve(Buffer.concat(pieces).toString()));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}
