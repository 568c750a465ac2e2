import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { Exchange } from '../endpoint.ts';
import { type HttpProblem, toProblem } from '../problem.ts';
import type { Authentication } from './authentication.ts';
import type { KnownCaller } from './caller.ts';
import type { Challenges } from './challenges.ts';
import { isRequired, type Need, type NeededScopes, type Required } from './need.ts';

/** A request that was refused for its credentials or its rate. */
export interface Refusal {
  readonly exchange: Pick<Exchange, 'id' | 'method' | 'address'>;
  readonly caller: KnownCaller | undefined;
  readonly problem: HttpProblem;
}

export interface ApiGateOptions {
  readonly required: Required;
  readonly scopes: NeededScopes;
  readonly authentication: Authentication;
  readonly challenges: Challenges;
  /** Called for each refusal; default nobody. */
  readonly onRefusal?: ((refusal: Refusal) => void) | undefined;
}

/** Lets requests into REST and GraphQL, or refuses them. One gate serves both doors. */
export class ApiGate implements Disposable {
  readonly #options: ApiGateOptions;
  readonly #resources = new DisposableStack();

  constructor(options: ApiGateOptions) {
    this.#options = options;
  }

  /** Disposes of a resource with the gate; returns it. */
  use<T extends Disposable>(resource: T): T {
    return this.#resources.use(resource);
  }

  [Symbol.dispose](): void {
    this.#resources.dispose();
  }

  /** What it asks for, for descriptions. */
  get rules() {
    const { required, scopes, challenges } = this.#options;
    return { required, scopes, takesPasswords: challenges.takesPasswords };
  }

  /**
   * Admits a request that does one thing, before its body is read, and notes its caller. Throws or rejects with
   * HttpProblem.
   */
  admit(exchange: Exchange, need: Need): MaybePromise<void> {
    return whenReady(this.#identify(exchange, exchange.headers.authorization), () =>
      this.authorize(exchange, need),
    );
  }

  /** Admits a request whose operations are still to be read; `authorize` judges each. Throws or rejects with HttpProblem. */
  admitAny(exchange: Exchange): MaybePromise<void> {
    return this.admitLate(exchange, exchange.headers.authorization);
  }

  /** Admits a request whose client may still send its credentials, to `admitLate`. Throws or rejects with HttpProblem. */
  admitEarly(exchange: Exchange): MaybePromise<void> {
    return this.#identify(exchange, exchange.headers.authorization);
  }

  /** Admits a request with credentials that came behind its head, if they did. Throws or rejects with HttpProblem. */
  admitLate(exchange: Exchange, authorization: string | undefined): MaybePromise<void> {
    return whenReady(this.#identify(exchange, authorization), () => {
      if (exchange.caller !== undefined || this.#options.required !== 'all') return;
      throw this.#refused(exchange, this.#options.challenges.missing);
    });
  }

  /** Judges one operation of a request that was admitted. Throws HttpProblem. */
  authorize(exchange: Exchange, need: Need): void {
    const { required, scopes, challenges } = this.#options;
    if (!isRequired(required, need)) return;
    const { caller } = exchange;
    if (caller === undefined) throw this.#refused(exchange, challenges.missing);
    if (!this.#options.authentication.isValid(caller)) throw this.#refused(exchange, challenges.invalid);
    const scope = scopes[need];
    if (!caller.scopes.has(scope)) throw this.#refused(exchange, challenges.lacksScope(scope));
  }

  /** Whether what a request has opened may go on: its credentials may have expired or been revoked since. */
  mayGoOn({ caller }: Pick<Exchange, 'caller'>): boolean {
    return caller === undefined || this.#options.authentication.isValid(caller);
  }

  #identify(exchange: Exchange, authorization: string | undefined): MaybePromise<void> {
    if (authorization === undefined || this.#options.required === 'none') return;
    try {
      const caller = this.#options.authentication.callerOf(authorization, exchange);
      if (!(caller instanceof Promise)) {
        exchange.caller = caller;
        return;
      }
      return caller.then(
        (late) => {
          exchange.caller = late;
        },
        (error: unknown) => {
          throw this.#refused(exchange, error);
        },
      );
    } catch (error) {
      throw this.#refused(exchange, error);
    }
  }

  /** Every refusal of the gate is made here. */
  #refused(exchange: Exchange, error: unknown): unknown {
    const { onRefusal } = this.#options;
    if (onRefusal !== undefined) {
      const { id, method, address, caller } = exchange;
      onRefusal({ exchange: { id, method, address }, caller, problem: toProblem(error) });
    }
    return error;
  }
}
