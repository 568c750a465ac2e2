import type { HandlerSpec } from '../inbox/handler.ts';
import type { CodeCheck } from '../observability/code-check.ts';
import type { CustomEndpoint } from './custom-endpoint.ts';

/** Somebody who may log in to the management endpoints. */
export interface ManagementUser {
  readonly user: string;
  readonly password: string;
  readonly roles: readonly string[];
}

/** The code that a configuration module adds. */
export interface ConfigCode {
  readonly healthChecks: ReadonlyMap<string, CodeCheck>;
  readonly endpoints: readonly CustomEndpoint[];
  readonly users: readonly ManagementUser[];
  /** By event. */
  readonly handlers: ReadonlyMap<string, HandlerSpec>;
}

/** What only a module can hold, for the documentation. */
export const codeKeys = [
  {
    key: 'management.healthChecks',
    shape: '{ [name]: (signal) => number }',
    description:
      'Health checks by name. 0 is healthy, any other number is shown as the code of what is wrong.',
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
] as const;

export type CodeKey = (typeof codeKeys)[number]['key'];
