import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { type AdminApplication, adminServer } from './server.ts';

/** What is registered, where, and how often. */
export interface AdminRegistrationOptions {
  /** The Spring Boot Admin server; user and password in it are sent as Basic credentials. */
  readonly url: string;
  readonly application: AdminApplication;
  readonly log: Pick<FastifyBaseLogger, 'info' | 'warn'>;
  /** Interval of registrations, in milliseconds; default 10,000. A restarted server knows none. */
  readonly intervalMs?: number;
  /** Timeout of a request, in milliseconds; default 5,000. */
  readonly timeoutMs?: number;
  /** Timeout of the deregistration, in milliseconds; default 2,000. */
  readonly farewellMs?: number;
}

/**
 * Registers with a Spring Boot Admin server, now and at an interval; only changes are logged. Returns the function that
 * stops this and deregisters, within `farewellMs`. Neither fails: the service does not depend on the server.
 */
export function keepRegistered(options: AdminRegistrationOptions): () => Promise<void> {
  const { application, log, intervalMs = 10_000, timeoutMs = 5_000, farewellMs = 2_000 } = options;
  const server = adminServer(options.url);
  const stopping = new AbortController();
  const givingUp = new AbortController();
  const signal = () => AbortSignal.any([AbortSignal.timeout(timeoutMs), givingUp.signal]);
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
        log.warn(details, 'Spring Boot Admin registration failed, retrying');
      }
      registered = false;
    }
  }

  async function renew(): Promise<void> {
    while (!stopping.signal.aborted) {
      await register();
      await sleep(intervalMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  }

  const renewal = renew();
  return async () => {
    stopping.abort();
    const limit = setTimeout(() => givingUp.abort(), farewellMs);
    // The registration under way brings the id to deregister.
    await renewal;
    try {
      if (id !== undefined) await server.deregister(id, signal());
    } catch (error) {
      log.warn({ server: server.url, err: error }, 'Spring Boot Admin deregistration failed');
    } finally {
      clearTimeout(limit);
    }
  };
}
