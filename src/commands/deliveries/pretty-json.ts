/** TC39's "JSON.parse source text access", which the compiler has no types for. */
interface SourceJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}
const json = JSON as unknown as SourceJson;

/** Control characters of terminals, bidirectional ones included, that JSON.stringify does not escape. */
const CONTROLS = /[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]/g;

/** JSON text, indented; every number keeps all its digits. */
export function prettyJson(text: string): string {
  const value = json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? json.rawJSON(source) : value,
  );
  return JSON.stringify(value, null, 2).replace(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
