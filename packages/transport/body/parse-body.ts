import { HttpProblem } from '../problem.ts';
import { LIMITS } from '../server/limits.ts';

const jsonDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/**
 * Parses a request body as JSON, strictly: valid UTF-8, at most `LIMITS.jsonDepth` levels, no key `__proto__`
 * at any level, and within `LIMITS.json` if it `isLarge`. Throws HttpProblem with status 400.
 */
export function parseJsonBody(body: Uint8Array, isLarge = false): unknown {
  let text: string;
  try {
    text = jsonDecoder.decode(body);
  } catch (cause) {
    throw new HttpProblem(400, 'INVALID_UTF8', 'The body is not valid UTF-8', { cause });
  }
  return parseJsonText(text, isLarge);
}

/** Bounds the members and elements before JSON.parse sees them: it takes a microsecond for each new key. */
function refuseMany(text: string): void {
  const { members: maxMembers, elements: maxElements } = LIMITS.json;
  // Each member takes five characters, each element two.
  if (text.length <= Math.min(5 * maxMembers, 2 * maxElements)) return;
  let members = 0;
  let elements = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x22) i = endOfString(text, i);
    else if (c === 0x3a) members++;
    else if (c === 0x2c) elements++;
  }
  const [most, what] =
    members > maxMembers ? [maxMembers, 'members'] : elements > maxElements ? [maxElements, 'elements'] : [];
  if (most === undefined) return;
  const message = `The JSON has more than ${most.toLocaleString('en-US')} ${what} (JSON ${what}); send less at a time`;
  throw new HttpProblem(400, 'LIMIT_EXCEEDED', message);
}

/** The end of the string that begins at a place, or of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === 0x5c) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

/** Parses JSON text from outside, with the same refusals as parseJsonBody. */
export function parseJsonText(text: string, isLarge = false): unknown {
  if (isLarge) refuseMany(text);
  refuseDepth(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const reasons = [{ detail: (cause as SyntaxError).message }];
    throw new HttpProblem(400, 'MALFORMED_JSON', 'The JSON is malformed', { cause, reasons });
  }
  // The key may be written plainly or with escapes; a body with neither needs no further check.
  if (text.includes('\\') || text.includes('__proto__')) refuseProto(value);
  return value;
}

/** Bounds the nesting before JSON.parse sees it. */
function refuseDepth(text: string): void {
  // Each level takes two characters.
  if (text.length <= 2 * LIMITS.jsonDepth || !hasOpenings(text, LIMITS.jsonDepth + 1)) return;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > LIMITS.jsonDepth) {
        throw new HttpProblem(400, 'TOO_DEEP', `The JSON is nested deeper than ${LIMITS.jsonDepth} levels`);
      }
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
}

/** Whether a text has so many opening brackets, including those in strings. */
function hasOpenings(text: string, count: number): boolean {
  let left = count;
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      if (--left === 0) return true;
    }
  }
  return false;
}

function refuseProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) {
    throw new HttpProblem(400, 'PROTO_KEY', 'The JSON has a key "__proto__"');
  }
  if (!Array.isArray(value)) for (const member of Object.values(value)) refuseProto(member);
  else for (const element of value) refuseProto(element);
}
