/** The members of TC39's "JSON.parse source text access" that the compiler does not know yet. */
interface SourceJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}
const json = JSON as unknown as SourceJson;

/** Characters that a terminal obeys, or that turn the order of what it shows. JSON itself escapes the rest of them. */
const UNRULY = /[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]/g;

/** JSON text with indents; every number keeps all its digits. */
export function prettyJson(text: string): string {
  const value = json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? json.rawJSON(source) : value,
  );
  return JSON.stringify(value, null, 2).replace(
    UNRULY,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
