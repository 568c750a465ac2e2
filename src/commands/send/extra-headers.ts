import { headerName } from '../../core/header-name.ts';
import { misuse } from './misuse.ts';

/** Reads headers written as `name: text`; the names in lower case. Throws UsageError. */
export function extraHeaders(lines: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      const name = colon === -1 ? undefined : headerName(line.slice(0, colon));
      const value = line.slice(colon + 1).trim();
      if (name === undefined || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
        throw misuse('--header must be like "x-request-id: 7"');
      }
      return [name, value];
    }),
  );
}
