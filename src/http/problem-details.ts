import { ERROR_CODES } from '../core/error-codes.ts';
import { parseAccept } from './accept.ts';
import { type HttpProblem, reasonPhrase } from './problem.ts';

/** The media type of problem details in JSON (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json';

/** Whether an Accept header names problem details. Ranges do not count: `*\/*` is what a client sends that knows none. */
export function takesProblems(accept: string | undefined): boolean {
  if (accept === undefined || !/problem\+json/i.test(accept)) return false;
  const { weight, specificity } = parseAccept(accept)(PROBLEM_TYPE);
  return weight > 0 && specificity === 2;
}

/**
 * A refusal as problem details: the title is what its code means, the detail what was wrong this time, and `errors` has
 * each reason where there are several or one can be pointed to.
 */
export function problemDetails({ code, message, reasons }: HttpProblem, status: number): string {
  return JSON.stringify({
    type: `urn:problem-type:portico:${code}`,
    title: titleOf(code) ?? reasonPhrase(status),
    status,
    detail: message,
    code,
    errors: reasons.length === 0 ? undefined : reasons,
  });
}

/** Codes of Fastify and Node are in no catalogue. */
function titleOf(code: string): string | undefined {
  const known: Readonly<Record<string, { readonly text: string }>> = ERROR_CODES;
  return Object.hasOwn(known, code) ? known[code]?.text : undefined;
}
