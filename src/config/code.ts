import type { DeliveryHandler } from '../inbox/handler.ts';
import type { CodeCheck } from '../observability/code-check.ts';

/** A management endpoint of the user's own (contract 4.3). */
export interface CustomEndpoint {
  /** Its path under the base path: a lower-case letter, then letters, digits, "." and "-". */
  readonly id: string;
  /** What a GET answers, as plain text. */
  read(): string | Promise<string>;
}

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
  readonly handlers: ReadonlyMap<string, DeliveryHandler>;
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
    description: 'More management endpoints; a GET answers the text that `read` returns.',
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
    description: 'What is done with a delivery, by its event.',
  },
] as const;

export type CodeKey = (typeof codeKeys)[number]['key'];
