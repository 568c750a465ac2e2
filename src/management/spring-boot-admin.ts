import { hostname } from 'node:os';
import { unescape as decode } from 'node:querystring';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSecure } from '@portico/transport';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Metrics } from '../telemetry/metrics.ts';
import { addJvmMetrics } from '../telemetry/runtime.ts';
import { ManagementOptionsError } from './management-errors.ts';

/** The registration of the service with a Spring Boot Admin server. */
export interface SpringBootAdminOptions
  extends Pick<AdminRegistrationOptions, 'intervalMs' | 'timeoutMs' | 'farewellMs'> {
  /** The server's URL; its user and password are sent as Basic credentials. */
  readonly url: string;
  /** The name that the server shows. Default: the artifact of the build. */
  readonly name?: string | undefined;
  /** The URL of the base path as the server reaches it. Default: the address on which the door listens. */
  readonly managementUrl?: string | undefined;
  /** The link to the service. Default: the root of the management URL. */
  readonly serviceUrl?: string | undefined;
  /** The credentials with which the server logs in. Sent to it only if both are set. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Whether to add meters with a JVM's names, which the server's panels read. Default: true. */
  readonly jvmMetrics?: boolean | undefined;
}

/** The part of the door that is registered. */
interface Registered {
  /** The path of the door, without a trailing slash. */
  readonly path: string;
  readonly name: string;
  readonly metrics: Metrics;
}

/** Registers with a Spring Boot Admin server as long as the application listens. */
export function registerWithAdmin(
  app: FastifyInstance,
  options: SpringBootAdminOptions,
  door: Registered,
): void {
  if (options.jvmMetrics !== false) {
    const meters = addJvmMetrics(door.metrics);
    app.addHook('onClose', async () => meters[Symbol.dispose]());
  }
  checkUrls(options);
  let deregister: (() => Promise<void>) | undefined;
  app.addHook('onListen', async () => {
    const application = describeApplication(originOf(app), options, door);
    deregister = keepRegistered({ ...options, application, log: app.log });
  });
  app.addHook('preClose', async () => deregister?.());
}

function checkUrls({ url, managementUrl = url, serviceUrl = url }: SpringBootAdminOptions): void {
  if ([url, managementUrl, serviceUrl].every((each) => /^https?:/i.test(each) && URL.canParse(each))) return;
  throw new ManagementOptionsError('The URLs for Spring Boot Admin must begin with http:// or https://.');
}

/** The registration of a door that listens at `origin`. */
function describeApplication(
  origin: string,
  options: SpringBootAdminOptions,
  { path, name }: Pick<Registered, 'path' | 'name'>,
): AdminApplication {
  const { user, password } = options;
  const managementUrl = (options.managementUrl ?? `${reachable(origin)}${path}`).replace(/\/+$/, '');
  return {
    name: options.name ?? name,
    managementUrl,
    healthUrl: `${managementUrl}/health`,
    // The URLs must differ, or the server takes the endpoints for those of Spring Boot 1.
    serviceUrl: options.serviceUrl ?? new URL('/', managementUrl).href,
    metadata: {
      startup: new Date(performance.timeOrigin).toISOString(),
      ...(user === undefined || password === undefined
        ? {}
        : { 'user.name': user, 'user.password': password }),
    },
  };
}

/** The door's origin. Fastify does not know whether a server that it was given speaks TLS. */
function originOf({ server, listeningOrigin }: FastifyInstance): string {
  return isSecure(server) ? listeningOrigin.replace(/^http:/, 'https:') : listeningOrigin;
}

/** Replaces an unspecified address, which other machines cannot reach. */
function reachable(origin: string): string {
  return origin.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`);
}

/** Content, target and interval of the registrations. */
interface AdminRegistrationOptions {
  /** The server's URL; its user and password are sent as Basic credentials. */
  readonly url: string;
  readonly application: AdminApplication;
  readonly log: Pick<FastifyBaseLogger, 'info' | 'warn'>;
  /** Interval of registrations, from which a restarted server learns, in milliseconds. Default: 10,000. */
  readonly intervalMs?: number;
  /** Timeout of a request, in milliseconds. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Timeout of the deregistration, in milliseconds. Default: 2,000. */
  readonly farewellMs?: number;
}

/**
 * Registers with a Spring Boot Admin server now and at an interval; logs only changes. Returns a function
 * that stops this and deregisters, within `farewellMs`. Neither fails, because the service does not depend on
 * the server.
 */
function keepRegistered(options: AdminRegistrationOptions): () => Promise<void> {
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
    // The pending registration returns the id to deregister.
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

/** An application, as sent to a Spring Boot Admin server. */
interface AdminApplication {
  readonly name: string;
  /** The base path of the management endpoints. */
  readonly managementUrl: string;
  readonly healthUrl: string;
  readonly serviceUrl: string;
  /** The server logs in with `user.name` and `user.password`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** A Spring Boot Admin server refused a request, or its answer was unusable. */
class AdminServerError extends Error {
  override readonly name = 'AdminServerError';
  readonly code = 'SPRING_BOOT_ADMIN';
}

const MAX_REPLY_BYTES = 64 * 1024;

/** The two requests to a server. They fail with AdminServerError, or as `fetch` does. */
function adminServer(url: string) {
  const base = new URL(url);
  const { username, password } = base;
  base.username = '';
  base.password = '';
  const instances = `${base.href.replace(/\/+$/, '')}/instances`;
  const headers: Record<string, string> = { accept: 'application/json' };
  if (username !== '' || password !== '') {
    const credentials = `${decode(username)}:${decode(password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  }

  async function ask(path: string, init: RequestInit, alsoGood?: number): Promise<string> {
    // A redirect to a log-in page must not look like success.
    const response = await fetch(`${instances}${path}`, { ...init, redirect: 'manual' });
    const text = await readBounded(response);
    if (!response.ok && response.status !== alsoGood)
      throw new AdminServerError(`The server answered ${response.status}`);
    return text;
  }

  return {
    /** For logs: without credentials. */
    url: base.href,
    /** Resolves to the id of the registration; the same application always gets the same id. */
    async register(application: AdminApplication, signal: AbortSignal): Promise<string> {
      const init = { method: 'POST', body: JSON.stringify(application), signal };
      const text = await ask('', { ...init, headers: { ...headers, 'content-type': 'application/json' } });
      return idOf(text);
    },
    async deregister(id: string, signal: AbortSignal): Promise<void> {
      // 404: not registered any more.
      await ask(`/${encodeURIComponent(id)}`, { method: 'DELETE', headers, signal }, 404);
    },
  };
}

function idOf(text: string): string {
  let reply: unknown;
  try {
    reply = JSON.parse(text);
  } catch (cause) {
    throw new AdminServerError('The server answered no JSON', { cause });
  }
  const { id } = Object(reply) as { readonly id?: unknown };
  if (typeof id !== 'string' || id === '') throw new AdminServerError('The server answered no id');
  return id;
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_REPLY_BYTES) throw new AdminServerError('The server answered more than a registration');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
