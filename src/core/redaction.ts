/** Shorter texts occur by chance; redacting them would reveal more than it hides. */
const SHORTEST = 6;

/** Secrets to redact, longest first. The array is replaced when secrets are added. */
export interface SecretTexts {
  readonly texts: readonly string[];
}

export class KnownSecrets implements SecretTexts {
  #texts: readonly string[] = [];

  constructor(values: Iterable<unknown>) {
    this.add(values);
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  /** Ignores values that are not texts, and short texts. */
  add(values: Iterable<unknown>): void {
    const texts = new Set(this.#texts);
    for (const value of values) if (typeof value === 'string' && value.length >= SHORTEST) texts.add(value);
    this.#texts = [...texts].sort((a, b) => b.length - a.length);
  }
}

/** Redacts the secrets in a text. */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((shown, secret) => shown.replaceAll(secret, '******'), text);
}

/** A header name in lower case; undefined for an invalid name (RFC 9110, 5.1). */
export function headerName(text: string): string | undefined {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text) ? text.toLowerCase() : undefined;
}

/** Matched anywhere in a name without separators: refusing a harmless header beats storing a secret. */
const SECRET_PARTS =
  /authoriz|authentic|cookie|signature|token|secret|passw|passphrase|credential|session|hmac|jwt|bearer|assertion|(?:api|access|private|auth|shared|signing|subscription|master|account)key/;

/** Matched against the words of a name. */
const SECRET_WORDS: ReadonlySet<string> = new Set(['auth', 'sig', 'sign', 'mac', 'otp', 'pin', 'cred']);

/** The header of Trello's signature. */
const SECRET_NAMES: ReadonlySet<string> = new Set(['x-trello-webhook']);

/** Whether a header name suggests a credential or a signature; `name` is in lower case. */
export function isSecretHeader(name: string): boolean {
  const words = name.split(/[^a-z0-9]+/);
  return (
    SECRET_NAMES.has(name) ||
    SECRET_PARTS.test(words.join('')) ||
    words.some((word) => SECRET_WORDS.has(word))
  );
}

/** Whether a text is the name of a header that may be stored. */
export function isKeepableHeader(text: string): boolean {
  const name = headerName(text);
  return name !== undefined && !isSecretHeader(name);
}
