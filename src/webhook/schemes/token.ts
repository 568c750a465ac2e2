import { secretMatcher } from '../../http/auth/secret-equal.ts';
import { headerOf, type Scheme } from './scheme.ts';
import { firstOf, textKeys } from './text-secret.ts';

const anyBody = () => undefined;

/** The shared secret itself in a header, whose name is in lower case: it authenticates the sender, not the content. */
export function token(header: string): Scheme {
  return {
    verifier(secrets) {
      textKeys(secrets);
      const matches = secretMatcher(secrets);
      return (headers) => {
        const presented = headerOf(headers, header);
        if (presented === undefined) return 'no-token';
        // Node decodes headers as Latin-1, but most senders encode a non-ASCII secret as UTF-8.
        const matched = matches(presented) || matches(Buffer.from(presented, 'latin1').toString());
        return matched ? anyBody : 'wrong-token';
      };
    },
    signer(secrets) {
      const value = Buffer.from(firstOf(textKeys(secrets))).toString('latin1');
      return () => ({ [header]: value });
    },
  };
}
