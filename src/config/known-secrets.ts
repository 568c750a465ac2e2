import { serverUrls } from '../database/server-urls.ts';
import type { Config } from './load.ts';
import { type OptionKey, optionKeys, optionOf } from './options.ts';

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

const URLS = ['database.url', 'database.readUrl'] as const satisfies readonly OptionKey[];

/** What secret options hold, the passwords of users, and those inside the URLs of databases. */
export function configuredSecrets({ settings, code }: Config): readonly unknown[] {
  const urls: readonly OptionKey[] = URLS;
  const options = optionKeys.filter((key) => optionOf(key).secret && !urls.includes(key));
  return [
    ...options.flatMap((key): unknown => settings[key]),
    ...code.users.map(({ password }) => password),
    ...URLS.flatMap((key) => serverUrls(settings[key] ?? '').flatMap(passwordsIn)),
  ];
}

/** As written, and decoded. */
function passwordsIn(url: string): readonly string[] {
  const password = URL.parse(url)?.password ?? '';
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
