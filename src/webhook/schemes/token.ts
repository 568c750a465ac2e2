import { secretMatcher } from '../../http/auth/secret-equal.ts';
import { accepted, headerOf, refused, type Scheme } from './scheme.ts';
import { firstOf, textKeys, textSecretProblem } from './text-secret.ts';

export interface TokenParams {
  /** The header with the secret, in lower case. */
  readonly header: string;
}

const anyBody = () => accepted;

/** The shared secret itself in a header: it authenticates the sender, not the content. */
export const token: Scheme<TokenParams> = {
  secretProblem: textSecretProblem,

  verifier(secrets, { header }) {
    textKeys(secrets);
    const matches = secretMatcher(secrets);
    return (headers) => {
      const presented = headerOf(headers, header);
      if (presented === undefined) return refused('no-token');
      // Node decodes headers as Latin-1, but most senders encode a non-ASCII secret as UTF-8.
      const matched = matches(presented) || matches(Buffer.from(presented, 'latin1').toString());
      return matched ? anyBody : refused('wrong-token');
    };
  },

  signer(secrets, { header }) {
    const value = Buffer.from(firstOf(textKeys(secrets))).toString('latin1');
    return () => ({ [header]: value });
  },
};
