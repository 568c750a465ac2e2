import { HttpProblem } from '../../http/problem.ts';

/** The refusal of a parameter's value; `expected` says what it takes. */
export function invalidParameter(name: string, expected: string): HttpProblem {
  return new HttpProblem(400, 'INVALID_PARAMETER', `"${name}" takes ${expected}`);
}
