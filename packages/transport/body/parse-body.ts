import { HttpProblem } from '../problem.ts';
import { LIMITS } from '../server/limits.ts';

const jsonDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/**
 * Parses a request body as JSON, strictly: valid UTF-8, at most `LIMITS.jsonDepth` levels, no key `__proto__`
 * at any level. Throws HttpProblem with status 400.
 */
export function parseJsonBody(body: Uint8Array): unknown {
  let text: string;
  try {
    text = jsonDecoder.decode(body);
  } catch (cause) {
    throw new HttpProblem(400, 'INVALID_UTF8', 'The body is not valid UTF-8', { cause });
  }
  return parseJsonText(text);
}

/** Parses JSON text from outside, with the same refusals as parseJsonBody. */
export function parseJsonText(text: string): unknown {
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
  for (const member of Object.values(value)) refuseProto(member);
}
