import type { CustomEndpoint } from './custom-endpoint.ts';
import type { ConfiguredCheck, HealthGroupOptions } from './health-code.ts';
import type { ManagementUser } from './management-user.ts';
import type { HandlerSpec } from './module-handlers.ts';

/** The code that a configuration module adds. */
export interface ConfigCode {
  readonly healthChecks: ReadonlyMap<string, ConfiguredCheck>;
  readonly healthGroups: ReadonlyMap<string, HealthGroupOptions>;
  readonly endpoints: readonly CustomEndpoint[];
  readonly users: readonly ManagementUser[];
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
  /** Signed sources and forward addresses as they were written; the webhook door reads them. */
  readonly sources: unknown;
  readonly forward: unknown;
}

/** What only a module can hold, for the documentation. */
export const codeKeys = [
  {
    key: 'management.healthChecks',
    shape: '{ [name]: (signal) => number }',
    description:
      'Health checks by name. 0 is healthy, any other number is shown as the code of what is wrong; a check may also return `{ status, details }`. `{ check, timeout, ttl, critical }` says how it is run: times in milliseconds, `critical: false` for what the service can do without.',
  },
  {
    key: 'management.healthGroups',
    shape: '{ [name]: { include: [check], exclude, showDetails } }',
    description:
      'Health groups by name, read at `/health/<name>`; `*` stands for all checks. `liveness` and `readiness` are there already, answer at `/livez` and `/readyz` too, and can be replaced.',
  },
  {
    key: 'management.endpoints',
    shape: '[{ id, read: () => string }]',
    description:
      'More management endpoints; a GET answers the text or the JSON that `read` returns. `write` and `delete` take POST and DELETE; `path: "name"` and `query: ["name"]` declare what they are given as `{ path, query, body }`, with "?" behind a name that may be missing.',
  },
  {
    key: 'management.users',
    shape: '[{ user, password, roles: [role] }]',
    description:
      'Several users for the management endpoints, beside or instead of the one of management.user.',
  },
  {
    key: 'webhook.handlers',
    shape: '{ [event]: (delivery, { signal, log }) => void }',
    description:
      'What is done with a delivery, by its event; or `{ handler, concurrency, timeout, attempts, order }`, times in milliseconds, `order` a JSON pointer to the key whose deliveries are handled one after the other.',
  },
  {
    key: 'webhook.sources',
    shape: '{ [name]: { scheme, secrets, ... } }',
    description:
      'Signed senders, each at `/webhook/<name>`: `scheme` is standard, github, stripe, slack, hmac or token. Data only, so it may stand in .json too.',
  },
  {
    key: 'webhook.forward',
    shape: '{ [name]: { url, secrets, events, allowPrivate } }',
    description:
      'Addresses that deliveries are sent on to, signed anew with Standard Webhooks. Data only, so it may stand in .json too.',
  },
] as const;

/** The keys that hold data and no code. */
export const dataKeys: ReadonlySet<CodeKey> = new Set<CodeKey>(['webhook.sources', 'webhook.forward']);

export type CodeKey = (typeof codeKeys)[number]['key'];
