import { HttpProblem } from '../problem.ts';

const REALM = 'realm="portico"';
const BASIC = `Basic ${REALM}, charset="UTF-8"`;

/** The refusals of credentials, with the challenges of RFC 6750 3 (Bearer) and of RFC 7617 where passwords are taken too. */
export class Challenges {
  /** The request has no credentials. */
  readonly missing: HttpProblem;
  /** They are wrong, have expired or are revoked. */
  readonly invalid: HttpProblem;
  /** They cannot be read. */
  readonly malformed: HttpProblem;
  /** Whether passwords are taken beside tokens. */
  readonly takesPasswords: boolean;
  readonly #basic: string;

  constructor(takesPasswords: boolean) {
    this.takesPasswords = takesPasswords;
    this.#basic = takesPasswords ? `, ${BASIC}` : '';
    const unauthorized = 'UNAUTHORIZED';
    this.missing = this.#refusal(401, unauthorized, 'This needs credentials', '');
    this.invalid = this.#refusal(401, unauthorized, 'The credentials are not valid', 'error="invalid_token"');
    this.malformed = this.#refusal(
      401,
      unauthorized,
      'The credentials cannot be read',
      'error="invalid_token"',
    );
  }

  /** The caller is known and lacks a scope. */
  lacksScope(scope: string): HttpProblem {
    const message = `The credentials lack the scope ${scope}`;
    return this.#refusal(403, 'LACKS_SCOPE', message, `error="insufficient_scope", scope="${scope}"`);
  }

  #refusal(status: number, code: 'UNAUTHORIZED' | 'LACKS_SCOPE', message: string, error: string) {
    const challenge = `Bearer ${REALM}${error === '' ? '' : `, ${error}`}${this.#basic}`;
    return new HttpProblem(status, code, message, { headers: { 'www-authenticate': challenge } });
  }
}
