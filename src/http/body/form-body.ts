import { HttpProblem } from '../problem.ts';

/** The fields of a form by name; a name that stands more than once has all its texts, in their order. */
export type FormFields = Readonly<Record<string, string | readonly string[]>>;

const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether a Content-Type says that a body is a form. */
export function isFormType(contentType: string | null): boolean {
  return contentType !== null && FORM.test(contentType);
}

/**
 * Parses application/x-www-form-urlencoded strictly: every byte and every escape is UTF-8, and no field is called
 * `__proto__`. Throws an HttpProblem with status 400.
 */
export function parseFormBody(body: Uint8Array): FormFields {
  const fields = new Map<string, string[]>();
  try {
    for (const pair of decoder.decode(body).split('&')) {
      if (pair === '') continue;
      const end = pair.indexOf('=');
      const name = decoded(end === -1 ? pair : pair.slice(0, end));
      const value = end === -1 ? '' : decoded(pair.slice(end + 1));
      const known = fields.get(name);
      if (known === undefined) fields.set(name, [value]);
      else known.push(value);
    }
  } catch (cause) {
    throw new HttpProblem(400, 'MALFORMED_FORM', 'The form is malformed', { cause });
  }
  if (fields.has('__proto__')) throw new HttpProblem(400, 'PROTO_KEY', 'The form has a field "__proto__"');
  return Object.fromEntries(
    Array.from(fields, ([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  );
}

function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
