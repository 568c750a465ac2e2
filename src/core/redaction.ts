/** Shorter texts occur by chance; hiding them would reveal more than it hides. */
const SHORTEST = 6;

/** Secrets to redact, the longest first; another array once there are more. */
export interface SecretTexts {
  readonly texts: readonly string[];
}

/** The known secrets of a process. */
export class KnownSecrets implements SecretTexts {
  #texts: readonly string[] = [];

  constructor(values: Iterable<unknown>) {
    this.add(values);
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  /** Ignores what is no text, or a short one. */
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
