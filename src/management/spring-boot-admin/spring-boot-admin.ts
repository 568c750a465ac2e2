import { hostname } from 'node:os';
import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import { addJvmMetrics } from '../../observability/runtime/jvm-metrics.ts';
import { ManagementOptionsError } from '../options-error.ts';
import { type AdminRegistration, type AdminRegistrationOptions, adminRegistration } from './registration.ts';
import type { AdminApplication } from './server.ts';

/** How the service makes itself known to a Spring Boot Admin server. */
export interface SpringBootAdminOptions
  extends Pick<AdminRegistrationOptions, 'intervalMs' | 'timeoutMs' | 'farewellMs'> {
  /** The server; user and password in it are sent as Basic credentials. */
  readonly url: string;
  /** The name that the server shows; the artifact of the build when absent. */
  readonly name?: string | undefined;
  /** Where the server reaches the base path of the management endpoints; where the door listens when absent. */
  readonly managementUrl?: string | undefined;
  /** Where the link to the service leads; the root of the management URL when absent. */
  readonly serviceUrl?: string | undefined;
  /** What the server logs in with. It is told so: nothing is sent unless both are given. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Whether there are meters under the names of a JVM, for the server's panels; true when absent. */
  readonly jvmMetrics?: boolean | undefined;
}

/** What of the door the registration tells. */
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
  let registration: AdminRegistration | undefined;
  app.addHook('onListen', async () => {
    const application = describeApplication(app.listeningOrigin, options, door);
    registration = adminRegistration({ ...options, application, log: app.log });
    registration.start();
  });
  app.addHook('preClose', async () => registration?.stop());
}

function checkUrls({ url, managementUrl = url, serviceUrl = url }: SpringBootAdminOptions): void {
  if ([url, managementUrl, serviceUrl].every((each) => /^https?:/i.test(each) && URL.canParse(each))) return;
  throw new ManagementOptionsError('The URLs for Spring Boot Admin must begin with http:// or https://.');
}

/** What the server is told, for a door that listens at `origin`. */
export function describeApplication(
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

/** An address that stands for all of them is none that another machine could ask. */
function reachable(origin: string): string {
  return origin.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`);
}
