import type { Config } from '../config/load.ts';
import { type OptionKey, optionKeys, optionOf } from '../config/options/options.ts';
import { serverUrls } from '../database/database-url.ts';

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
