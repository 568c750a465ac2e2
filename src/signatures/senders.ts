import { sign as signEd25519, verify as verifyEd25519 } from 'node:crypto';
import { isRecord } from '../core/json.ts';
import {
  bodyAlone,
  hexBytes,
  hmac,
  textSecretProblem,
  timestampFault,
  token,
  UnusableSecretError,
} from './hmac.ts';
import { paypal, paypalSecretProblem } from './paypal.ts';
import { type AnyScheme, headerOf, type Scheme } from './schemes.ts';
import { publicKeyOf, readStandardKey, standard, standardKeyProblem } from './standard.ts';
import { twilio } from './twilio.ts';

// The schemes of single senders, by their documentation. Each has a sample in samples.ts.

/** The schemes that this file makes. */
type SenderName = 'shopify' | 'gitlab' | 'paypal' | 'twilio' | 'linear' | 'clerk' | 'resend' | 'discord';

interface SenderOptions {
  /** Maximum clock difference in seconds, 0 accepts every time; undefined for the sender's own default. */
  readonly tolerance: number | undefined;
  /** The URL that Twilio was given. */
  readonly url?: string | undefined;
}

/** Default of the maximum clock difference, in seconds. */
export const DEFAULT_TOLERANCE = 300;

/** The scheme of a sender. */
export function senderScheme(name: SenderName, { tolerance, url = '' }: SenderOptions): AnyScheme {
  const usual = tolerance ?? DEFAULT_TOLERANCE;
  switch (name) {
    case 'shopify':
      return shopify;
    case 'gitlab':
      return gitlab(usual);
    case 'paypal':
      // PayPal repeats a notification for three days, and does not say that a repetition gets a new time.
      return paypal({ tolerance: tolerance ?? 0 });
    case 'twilio':
      return twilio(url);
    case 'linear':
      // Linear's documentation recommends a minute.
      return linear(tolerance ?? 60);
    case 'clerk':
    case 'resend':
      return standard({ headerPrefix: 'svix', tolerance: usual });
    case 'discord':
      return discord(usual);
  }
}

/** The problem of an invalid secret of a sender, to follow its name; undefined if it is valid. */
export function senderSecretProblem(name: SenderName, secret: string): string | undefined {
  switch (name) {
    case 'clerk':
    case 'resend':
      return standardKeyProblem(secret);
    case 'gitlab':
      return isSigningToken(secret) ? standardKeyProblem(secret) : textSecretProblem(secret);
    case 'discord':
      return discordKeyProblem(secret);
    case 'paypal':
      return paypalSecretProblem(secret);
    default:
      return textSecretProblem(secret);
  }
}

/** X-Shopify-Hmac-SHA256: HMAC-SHA256 over the body alone, in base64. The topic and the ids are not signed. */
const shopify = hmac({
  header: 'x-shopify-hmac-sha256',
  algorithm: 'sha256',
  encoding: 'base64',
  prefix: '',
  timestampHeader: undefined,
  tolerance: 0,
  template: bodyAlone.fill,
});

/** Whether a secret of GitLab is a signing token rather than a secret token. */
function isSigningToken(secret: string): boolean {
  return secret.startsWith('whsec_');
}

/**
 * GitLab signs as Standard Webhooks do if the webhook has a signing token (`whsec_`). Otherwise it sends its
 * secret token in X-Gitlab-Token. A request with a signature is judged by it if a signing token is configured.
 */
function gitlab(tolerance: number): Scheme {
  const signed = standard({ headerPrefix: 'webhook', tolerance });
  const plain = token('x-gitlab-token');
  return {
    verifier(secrets) {
      const tokens = secrets.filter((secret) => !isSigningToken(secret));
      const verifySigned = signed.verifier(secrets.filter(isSigningToken));
      const verifyToken = plain.verifier(tokens);
      const signs = tokens.length < secrets.length;
      return (headers, now) => {
        const isSigned = headerOf(headers, 'webhook-signature') !== undefined;
        return signs && (isSigned || tokens.length === 0)
          ? verifySigned(headers, now)
          : verifyToken(headers, now);
      };
    },
    signer(secrets) {
      const [first = ''] = secrets;
      return isSigningToken(first)
        ? signed.signer(secrets.filter(isSigningToken))
        : plain.signer(secrets.filter((secret) => !isSigningToken(secret)));
    },
  };
}

/**
 * Linear-Signature: HMAC-SHA256 over the body alone, in hexadecimal digits. The time stands in the body, as
 * `webhookTimestamp` in milliseconds, and is therefore signed.
 */
function linear(tolerance: number): Scheme {
  const signature = hmac({
    header: 'linear-signature',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: '',
    timestampHeader: undefined,
    tolerance: 0,
    template: bodyAlone.fill,
  });
  return {
    ...signature,
    verifier(secrets) {
      const verifier = signature.verifier(secrets);
      return (headers, now) => {
        const step = verifier(headers, now);
        if (typeof step === 'string') return step;
        // The body is parsed only once it is authentic.
        return (body) => step(body) ?? timestampFault(linearTime(body), tolerance, now);
      };
    },
  };
}

/** The time in a body of Linear, in whole seconds as text; undefined without one. */
function linearTime(body: Uint8Array): string | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(body).toString());
    const time = isRecord(parsed) ? parsed.webhookTimestamp : undefined;
    return typeof time === 'number' ? String(Math.floor(time / 1_000)) : undefined;
  } catch {
    return undefined;
  }
}

const DISCORD_KEY = 'must be the public key of the application: 64 hexadecimal digits';
const ED25519_LENGTH = 64;

/** A public key in hexadecimal digits, or a private key of Standard Webhooks, with which tests can sign. */
function discordKeyProblem(secret: string): string | undefined {
  if (secret.startsWith('whsk_')) return standardKeyProblem(secret);
  return /^[0-9a-fA-F]{64}$/.test(secret) ? undefined : DISCORD_KEY;
}

/** Parses a key. Throws UnusableSecretError. */
function discordKey(secret: string) {
  const problem = discordKeyProblem(secret);
  if (problem !== undefined) throw new UnusableSecretError(problem);
  if (!secret.startsWith('whsk_')) {
    return { publicKey: publicKeyOf(Buffer.from(secret, 'hex')), privateKey: undefined };
  }
  const key = readStandardKey(secret);
  if (key.kind !== 'pair') throw new UnusableSecretError(DISCORD_KEY);
  return key;
}

/** X-Signature-Ed25519 over `{timestamp}{body}`, with the key of the application. */
function discord(tolerance: number): Scheme {
  const signatureHeader = 'x-signature-ed25519';
  const timestampHeader = 'x-signature-timestamp';
  return {
    verifier(secrets) {
      const keys = secrets.map((secret) => discordKey(secret).publicKey);
      return (headers, now) => {
        const text = headerOf(headers, signatureHeader);
        if (text === undefined) return 'no-signature';
        const timestamp = headerOf(headers, timestampHeader);
        const fault = timestampFault(timestamp, tolerance, now);
        if (fault !== undefined) return fault;
        const signature = hexBytes(text, ED25519_LENGTH);
        if (signature === undefined) return 'malformed-signature';
        return (body) => {
          const signed = Buffer.concat([Buffer.from(timestamp ?? ''), body]);
          return keys.some((key) => verifyEd25519(null, signed, key, signature))
            ? undefined
            : 'wrong-signature';
        };
      };
    },
    signer(secrets) {
      const key = secrets.flatMap((secret) => discordKey(secret).privateKey ?? [])[0];
      if (key === undefined) {
        throw new UnusableSecretError('that can sign is required: a private key that begins with whsk_');
      }
      return ({ timestamp, body }) => ({
        [timestampHeader]: String(timestamp),
        [signatureHeader]: signEd25519(
          null,
          Buffer.concat([Buffer.from(String(timestamp)), body]),
          key,
        ).toString('hex'),
      });
    },
  };
}
