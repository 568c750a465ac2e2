import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import {
  base64Bytes,
  hmacKeys,
  hmacLengths,
  textKeys,
  UnsignableError,
  UnusableSecretError,
} from './hmac.ts';
import { headerOf, type Refusal, type Scheme } from './schemes.ts';

const HEADER = 'x-twilio-signature';
/** Bounds the sorting of a form; Twilio sends some dozens. */
const MAX_PARAMETERS = 1_000;
const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * X-Twilio-Signature: HMAC-SHA1 in base64 over the URL, followed by the names and values of the form, sorted by
 * name. For other bodies Twilio adds `bodySHA256` to the query, and signs the URL alone. `url` is the URL that
 * Twilio was given: behind a proxy, the request does not show it. Its query is taken from the request.
 */
export function twilio(url: string): Scheme {
  return {
    verifier(secrets) {
      const keys = hmacKeys('sha1', textKeys(secrets));
      return (headers, _now, request) => {
        const text = headerOf(headers, HEADER);
        if (text === undefined) return 'no-signature';
        const signature = base64Bytes(text, hmacLengths.sha1);
        if (signature === undefined) return 'malformed-signature';
        const query = queryOf(request?.target ?? '');
        const digest = new URLSearchParams(query).get('bodySHA256');
        const urls = signedUrls(url, query);
        const matches = (after: string): Refusal | undefined => {
          const signed = { before: '', after: '' };
          // Every form is tried, so that timing does not reveal which one matched.
          const found = urls.filter((each) =>
            keys.matches([signature], { ...signed, body: Buffer.from(each + after) }),
          );
          return found.length > 0 ? undefined : 'wrong-signature';
        };
        if (digest !== null) {
          return (body) => {
            const actual = createHash('sha256').update(body).digest('hex');
            return digest.toLowerCase() === actual ? matches('') : 'wrong-signature';
          };
        }
        const contentType = request?.contentType ?? null;
        // Without the digest only a form is signed.
        if (contentType !== null && !FORM.test(contentType)) return 'no-body-digest';
        return (body) => {
          const fields = signedFields(body);
          return fields === undefined ? 'malformed-signature' : matches(fields);
        };
      };
    },
    signer(secrets) {
      const keys = hmacKeys('sha1', textKeys(secrets));
      if (secrets.length === 0) throw new UnusableSecretError('that can sign is required; configure one');
      return ({ body, headers = {} }) => {
        const contentType = headerOf(headers, 'content-type');
        const fields = contentType === undefined || FORM.test(contentType) ? signedFields(body) : undefined;
        if (fields === undefined)
          throw new UnsignableError('Twilio signs forms; set content-type to that of a form');
        const [signature] = keys.sign({ before: '', body: Buffer.from(url + fields), after: '' });
        return { [HEADER]: signature?.toString('base64') ?? '' };
      };
    },
  };
}

/** The query of a request with its question mark; empty without one. */
function queryOf(target: string): string {
  const start = target.indexOf('?');
  return start === -1 ? '' : target.slice(start);
}

/** The URL as Twilio may have signed it: some of its products sign the port, others leave it out. */
function signedUrls(url: string, query: string): readonly string[] {
  const base = url.split('?', 1)[0] ?? '';
  const [, scheme = '', host = '', port, path = ''] =
    /^(https?):\/\/([^/:]*|\[[^\]]*\])(:\d+)?(.*)$/.exec(base) ?? [];
  if (scheme === '') return [base + query];
  const usual = port ?? (scheme === 'https' ? ':443' : ':80');
  return [`${scheme}://${host}${path}${query}`, `${scheme}://${host}${usual}${path}${query}`];
}

/** The signed text of a form: names and values, sorted by name; undefined if there are too many, or if it is not UTF-8. */
function signedFields(body: Uint8Array): string | undefined {
  // Decoding would turn different invalid bytes into the same text.
  if (!isUtf8(body)) return undefined;
  const text = Buffer.from(body).toString();
  if (text.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS) return undefined;
  const values = new Map<string, Set<string>>();
  for (const [name, value] of new URLSearchParams(text)) {
    const known = values.get(name);
    if (known === undefined) values.set(name, new Set([value]));
    else known.add(value);
  }
  return [...values.keys()]
    .toSorted()
    .flatMap((name) => [...(values.get(name) ?? [])].toSorted().map((value) => name + value))
    .join('');
}
