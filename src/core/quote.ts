const longest = 60;

/** Text from outside for use in a message: in quotes, on one line, without control characters, cut when long. */
export function quote(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return JSON.stringify(cut).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/** Any value of a configuration module for use in a message; objects by their kind alone. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (value === null || ['number', 'boolean', 'bigint', 'undefined'].includes(typeof value))
    return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A value that may be a secret, for use in a message: as `describeValue`, but a text by its kind alone. */
export function describeKind(value: unknown): string {
  return typeof value === 'string' ? 'a text' : describeValue(value);
}

/** The message of a foreign error: its text on one line, without control characters, cut when long. */
export function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 300);
}
