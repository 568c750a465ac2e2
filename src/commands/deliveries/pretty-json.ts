import { printableLines } from '../../core/quote.ts';

/** TC39's "JSON.parse source text access", which the compiler has no types for. */
interface SourceJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}
const json = JSON as unknown as SourceJson;

/** JSON text, indented; every number keeps all its digits. */
export function prettyJson(text: string): string {
  const value = json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? json.rawJSON(source) : value,
  );
  return printableLines(JSON.stringify(value, null, 2));
}
