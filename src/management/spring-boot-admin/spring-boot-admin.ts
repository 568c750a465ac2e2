import { hostname } from 'node:os';
import type { FastifyInstance } from 'fastify';
import { isSecure } from '../../http/server/connection-event.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import { addJvmMetrics } from '../../observability/runtime/jvm-metrics.ts';
import { ManagementOptionsError } from '../options-error.ts';
import { type AdminRegistrationOptions, keepRegistered } from './registration.ts';
import type { AdminApplication } from './server.ts';

/** The registration of the service with a Spring Boot Admin server. */
export interface SpringBootAdminOptions
  extends Pick<AdminRegistrationOptions, 'intervalMs' | 'timeoutMs' | 'farewellMs'> {
  /** The server; user and password in it are sent as Basic credentials. */
  readonly url: string;
  /** The name that the server shows; default the artifact of the build. */
  readonly name?: string | undefined;
  /** The URL of the base path as the server reaches it; default where the door listens. */
  readonly managementUrl?: string | undefined;
  /** The link to the service; default the root of the management URL. */
  readonly serviceUrl?: string | undefined;
  /** The server logs in with these. They are sent to it, and only when both are given. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Whether to add meters with a JVM's names, which the server's panels read; default true. */
  readonly jvmMetrics?: boolean | undefined;
}

/** The part of the door that is registered. */
export interface Registered {
  /** The path of the door, without a slash at the end. */
  readonly path: string;
  readonly name: string;
  readonly metrics: Metrics;
}

/** Registers with a Spring Boot Admin server from when the application listens until it begins to close. */
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
    // The two must not be the same, or the server takes the endpoints for those of Spring Boot 1.
    serviceUrl: options.serviceUrl ?? new URL('/', managementUrl).href,
    metadata: {
      startup: new Date(performance.timeOrigin).toISOString(),
      ...(user === undefined || password === undefined
        ? {}
        : { 'user.name': user, 'user.password': password }),
    },
  };
}

/** Fastify knows nothing of the TLS of a server that it was given. */
function originOf({ server, listeningOrigin }: FastifyInstance): string {
  return isSecure(server) ? listeningOrigin.replace(/^http:/, 'https:') : listeningOrigin;
}

/** Replaces an unspecified address, which another machine cannot reach. */
function reachable(origin: string): string {
  return origin.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`);
}
