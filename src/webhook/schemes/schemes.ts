import { github } from './github.ts';
import { type HmacParams, hmac } from './hmac.ts';
import type { Scheme, Signer, Verifier } from './scheme.ts';
import { type SlackParams, slack } from './slack.ts';
import { type StandardParams, standard } from './standard.ts';
import { type StripeParams, stripe } from './stripe.ts';
import { type TokenParams, token } from './token.ts';

/** What the two sides agree on beside the secrets. */
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

export const schemeNames: readonly SchemeName[] = ['standard', 'github', 'stripe', 'slack', 'hmac', 'token'];

/** Why a text cannot be a secret of a scheme, to be put behind its name; undefined when it can. */
export function secretProblem(scheme: SchemeName, secret: string): string | undefined {
  return schemes[scheme].secretProblem(secret);
}

/** Prepares the check of requests. Throws UnusableSecretError. */
export function createVerifier<S extends SchemeName>(
  { scheme, params }: ChosenScheme<S>,
  secrets: readonly string[],
): Verifier {
  return schemes[scheme].verifier(secrets, params);
}

/** Prepares the signing of requests. Throws UnusableSecretError. */
export function createSigner<S extends SchemeName>(
  { scheme, params }: ChosenScheme<S>,
  secrets: readonly string[],
): Signer {
  return schemes[scheme].signer(secrets, params);
}
