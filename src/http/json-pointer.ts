/** Whether a text is a JSON pointer (RFC 6901): empty, or segments that each begin with a slash. */
export function isJsonPointer(text: string): boolean {
  return /^(?:\/(?:[^~]|~[01])*)?$/u.test(text);
}

/**
 * The value that a JSON pointer (RFC 6901) names; undefined when there is none.
 * Only members of its own are looked at, never inherited ones.
 */
export function resolvePointer(value: unknown, pointer: string): unknown {
  let found = value;
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
    // An array has indices only; its length is no element.
    if (Array.isArray(found) && !/^(?:0|[1-9]\d*)$/.test(key)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key];
  }
  return found;
}
