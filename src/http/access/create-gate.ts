import { authenticator } from '../auth/authenticator.ts';
import type { BasicUser } from '../auth/basic-auth.ts';
import { FailureLimit, type FailureLimitOptions } from '../auth/failure-limit.ts';
import type { OnRefused } from '../server/refused-request.ts';
import { ApiGate } from './api-gate.ts';
import { Authentication } from './authentication.ts';
import { Challenges } from './challenges.ts';
import { ClientRate, type RateRule } from './client-rate.ts';
import type { Load } from './load.ts';
import type { NeededScopes, Required } from './need.ts';
import type { TokenSource } from './token-source.ts';

/** What a gate is made of. */
export interface GateParts extends Pick<FailureLimitOptions, 'maxFailures' | 'onLimit'> {
  readonly required: Required;
  readonly scopes: NeededScopes;
  /** Where tokens are known from; each is asked for what those before do not know. */
  readonly sources: readonly TokenSource[];
  readonly users: readonly BasicUser[];
  /** Scopes of each user beside the roles; without any there is no Basic. */
  readonly basicScopes: readonly string[];
  readonly rate?: RateRule | undefined;
  readonly load?: Load | undefined;
  readonly onRefused?: OnRefused | undefined;
}

/** Makes the gate of REST and GraphQL. Throws UserNameError, EmptySecretError or PasswordHashError. */
export function createGate(parts: GateParts): ApiGate {
  const { required, scopes, sources, users, basicScopes, onRefused } = parts;
  const takesPasswords = basicScopes.length > 0;
  const challenges = new Challenges(takesPasswords);
  const failures = new FailureLimit(parts);
  const authentication = new Authentication({
    sources,
    basic: takesPasswords
      ? { authenticate: authenticator(users, { failures }), scopes: basicScopes }
      : undefined,
    challenges,
    failures,
    now: Date.now,
  });
  const rate = parts.rate && new ClientRate(parts.rate);
  return new ApiGate({ required, scopes, authentication, challenges, rate, load: parts.load, onRefused });
}
