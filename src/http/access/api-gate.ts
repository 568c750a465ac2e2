import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import { attemptSource } from '../auth/attempt-limit.ts';
import type { Exchange } from '../endpoint.ts';
import { HttpProblem, toProblem } from '../problem.ts';
import type { Authentication } from './authentication.ts';
import type { KnownCaller } from './caller.ts';
import type { Challenges } from './challenges.ts';
import type { ClientRate } from './client-rate.ts';
import type { Load } from './load.ts';
import { isRequired, type Need, type NeededScopes, type Required } from './need.ts';
import { rateFields, seconds } from './rate-fields.ts';

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
  /** How many requests a client may make; default any number. */
  readonly rate?: ClientRate | undefined;
  /** What refuses requests while the service is late; default nothing. */
  readonly load?: Load | undefined;
  /** Called for each refusal; default nobody. */
  readonly onRefusal?: ((refusal: Refusal) => void) | undefined;
}

/** Lets requests into REST and GraphQL, or refuses them. One gate serves both doors. */
export class ApiGate implements AsyncDisposable {
  readonly #options: ApiGateOptions;
  readonly #rateFields: ReturnType<typeof rateFields> | undefined;
  readonly #resources = new AsyncDisposableStack();

  constructor(options: ApiGateOptions) {
    this.#options = options;
    this.#rateFields = options.rate && rateFields(options.rate.rule);
  }

  /** Disposes of a resource with the gate; returns it. */
  use<T extends Disposable | AsyncDisposable>(resource: T): T {
    return this.#resources.use(resource);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }

  /** What it asks for, for descriptions. */
  get rules() {
    const { required, scopes, challenges, rate, load } = this.#options;
    return {
      required,
      scopes,
      takesPasswords: challenges.takesPasswords,
      hasRate: rate !== undefined,
      hasLoadLimits: load !== undefined,
    };
  }

  /**
   * Admits a request that does one thing, before its body is read, and notes its caller. Throws or rejects with
   * HttpProblem.
   */
  admit(exchange: Exchange, need: Need): MaybePromise<void> {
    return whenReady(this.admitEarly(exchange), () => this.authorize(exchange, need));
  }

  /** Admits a request whose operations are still to be read; `authorize` judges each. Throws or rejects with HttpProblem. */
  admitAny(exchange: Exchange): MaybePromise<void> {
    return whenReady(this.admitEarly(exchange), () => this.#requireCaller(exchange));
  }

  /** Admits a request whose client may still send its credentials, to `admitLate`. Throws or rejects with HttpProblem. */
  admitEarly(exchange: Exchange): MaybePromise<void> {
    this.#refuseLate(exchange, undefined);
    const identified = this.#identify(exchange, exchange.headers.authorization);
    if (this.#options.rate === undefined) return identified;
    return whenReady(identified, () => this.#countRequest(exchange));
  }

  /** Admits a request with credentials that came behind its head, if they did. Throws or rejects with HttpProblem. */
  admitLate(exchange: Exchange, authorization: string | undefined): MaybePromise<void> {
    return whenReady(this.#identify(exchange, authorization), () => this.#requireCaller(exchange));
  }

  /** Counts an operation beside that which its request was counted for. Throws HttpProblem. */
  countOperation(exchange: Exchange): void {
    const quota = this.#options.rate?.take(clientOf(exchange), performance.now());
    if (quota?.isWithin === false) throw this.#refused(exchange, beyondRate(quota.wait));
  }

  /** Judges one operation of a request that was admitted. Throws HttpProblem. */
  authorize(exchange: Exchange, need: Need): void {
    this.#refuseLate(exchange, need);
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

  #refuseLate(exchange: Exchange, need: Need | undefined): void {
    const refusal = this.#options.load?.refusal(need);
    if (refusal !== undefined) throw this.#refused(exchange, refusal);
  }

  #countRequest(exchange: Exchange): void {
    const { rate } = this.#options;
    if (rate === undefined || this.#rateFields === undefined) return;
    const client = clientOf(exchange);
    const quota = rate.take(client, performance.now());
    exchange.addHeaders(this.#rateFields(quota));
    if (!quota.isWithin) throw this.#refused(exchange, beyondRate(quota.wait));
    exchange.onRepeat = () => rate.giveBack(client);
  }

  #requireCaller(exchange: Exchange): void {
    if (exchange.caller !== undefined || this.#options.required !== 'all') return;
    throw this.#refused(exchange, this.#options.challenges.missing);
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
          this.#countRequest(exchange);
          throw this.#refused(exchange, error);
        },
      );
    } catch (error) {
      // Wrong credentials are requests as well.
      this.#countRequest(exchange);
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

/** What a rate is counted by: the credentials, or else the network of the client. */
function clientOf({ caller, address }: Pick<Exchange, 'caller' | 'address'>): string {
  return caller?.id ?? attemptSource(address);
}

function beyondRate(wait: number): HttpProblem {
  return new HttpProblem(429, 'RATE_LIMITED', 'Too many requests; wait a while', {
    headers: { 'retry-after': String(Math.max(1, seconds(wait))) },
  });
}
