import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminApplication, adminServer } from './server.ts';

/** What is logged: that it works now, or that it does not any more and why. */
export interface RegistrationLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

export interface AdminRegistrationOptions {
  /** The Spring Boot Admin server; user and password in it are sent as Basic credentials. */
  readonly url: string;
  readonly application: AdminApplication;
  readonly log: RegistrationLog;
  /** Between two registrations, in milliseconds; 10,000 when absent. A server that was restarted forgets. */
  readonly intervalMs?: number;
  /** How long the server may take to answer, in milliseconds; 5,000 when absent. */
  readonly timeoutMs?: number;
  /** How long the end may take, in milliseconds; 2,000 when absent. */
  readonly farewellMs?: number;
}

/** A registration that is kept up. Neither member fails: no server is a reason not to serve. */
export interface AdminRegistration {
  /** Returns at once. */
  start(): void;
  /** Takes the registration back. Bounded by `farewellMs`. */
  stop(): Promise<void>;
}

/** Registers with a Spring Boot Admin server again and again; only changes are logged. */
export function adminRegistration(options: AdminRegistrationOptions): AdminRegistration {
  const { application, log, intervalMs = 10_000, timeoutMs = 5_000, farewellMs = 2_000 } = options;
  const server = adminServer(options.url);
  const stopping = new AbortController();
  const givingUp = new AbortController();
  const signal = () => AbortSignal.any([AbortSignal.timeout(timeoutMs), givingUp.signal]);
  let running: Promise<void> | undefined;
  let id: string | undefined;
  let registered: boolean | undefined;

  async function register(): Promise<void> {
    try {
      id = await server.register(application, signal());
      if (registered !== true) log.info({ server: server.url, id }, 'registered with Spring Boot Admin');
      registered = true;
    } catch (error) {
      if (registered !== false && !givingUp.signal.aborted) {
        const details = { server: server.url, err: error, retryMs: intervalMs };
        log.warn(details, 'cannot register with Spring Boot Admin, trying again');
      }
      registered = false;
    }
  }

  async function keepRegistered(): Promise<void> {
    while (!stopping.signal.aborted) {
      await register();
      await sleep(intervalMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  }

  return {
    start() {
      running ??= keepRegistered();
    },
    async stop() {
      if (running === undefined || stopping.signal.aborted) return running;
      stopping.abort();
      const limit = setTimeout(() => givingUp.abort(), farewellMs);
      // A registration under way is waited for: its id is what has to be taken back.
      await running;
      try {
        if (id !== undefined) await server.deregister(id, signal());
      } catch (error) {
        log.warn(
          { server: server.url, err: error },
          'cannot take back the registration with Spring Boot Admin',
        );
      } finally {
        clearTimeout(limit);
      }
    },
  };
}
