/** Shorter texts stand everywhere by chance; hiding them would tell more than it hides. */
const SHORTEST = 6;

/** Texts that may be shown nowhere, the longest first; another array once there are more. */
export interface SecretTexts {
  readonly texts: readonly string[];
}

/** The secrets of a process, as far as they are known. */
export class KnownSecrets implements SecretTexts {
  #texts: readonly string[] = [];

  constructor(values: Iterable<unknown>) {
    this.add(values);
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  /** What is no text, or a short one, is left out. */
  add(values: Iterable<unknown>): void {
    const texts = new Set(this.#texts);
    for (const value of values) if (typeof value === 'string' && value.length >= SHORTEST) texts.add(value);
    this.#texts = [...texts].sort((a, b) => b.length - a.length);
  }
}

/** Somebody else's text without the secrets in it. */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((shown, secret) => shown.replaceAll(secret, '******'), text);
}
