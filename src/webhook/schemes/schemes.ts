import { github } from './github.ts';
import { hmac } from './hmac.ts';
import type { HmacParams } from './hmac-header.ts';
import type { Scheme, Signer, Verifier } from './scheme.ts';
import { type SlackParams, slack } from './slack.ts';
import { type StandardParams, standard } from './standard.ts';
import { type StripeParams, stripe } from './stripe.ts';
import { type TokenParams, token } from './token.ts';

/** The parameters of each scheme. */
export interface SchemeParams {
  readonly standard: StandardParams;
  readonly github: unknown;
  readonly stripe: StripeParams;
  readonly slack: SlackParams;
  readonly hmac: HmacParams;
  readonly token: TokenParams;
}

export type SchemeName = keyof SchemeParams;

/** A scheme with its parameters. */
export type ChosenScheme<S extends SchemeName = SchemeName> = {
  readonly [K in S]: { readonly scheme: K; readonly params: SchemeParams[K] };
}[S];

const schemes: { readonly [S in SchemeName]: Scheme<SchemeParams[S]> } = {
  standard,
  github,
  stripe,
  slack,
  hmac,
  token,
};

export const schemeNames = Object.keys(schemes) as readonly SchemeName[];

/** Why a text is not a valid secret of a scheme; see `Scheme.secretProblem`. */
export function secretProblem(scheme: SchemeName, secret: string): string | undefined {
  return schemes[scheme].secretProblem(secret);
}

/** Creates the check of requests. Throws UnusableSecretError. */
export function createVerifier<S extends SchemeName>(
  { scheme, params }: ChosenScheme<S>,
  secrets: readonly string[],
): Verifier {
  return schemes[scheme].verifier(secrets, params);
}

/** Creates the signer of requests. Throws UnusableSecretError. */
export function createSigner<S extends SchemeName>(
  { scheme, params }: ChosenScheme<S>,
  secrets: readonly string[],
): Signer {
  return schemes[scheme].signer(secrets, params);
}
