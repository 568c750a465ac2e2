import { createContext, useContext } from 'react';

/** The service's description of itself and of the user's rights. */
export interface About {
  readonly name: string;
  readonly version: string;
  readonly process: {
    readonly host: string;
    readonly pid: number;
    readonly node: string;
    readonly startedAt: string;
  };
  readonly processes: readonly { readonly name: string; readonly since: string }[];
  readonly doors: readonly { readonly name: string; readonly url: string; readonly page: boolean }[];
  readonly database: string | null;
  readonly secured: boolean;
  readonly user: string | null;
  readonly actions: boolean;
  readonly endpoints: readonly string[];
  /** Why other endpoints are closed to this user, by id. */
  readonly closed: Readonly<Record<string, string>>;
  /** Whether the API reference is also exposed outside the console. */
  readonly reference: boolean;
  /** MANAGEMENT_SHOW_VALUES. */
  readonly showValues: 'never' | 'when-authorized' | 'always';
}

/** Undefined until the service has answered. */
export const AboutContext = createContext<About | undefined>(undefined);

export const useAbout = () => useContext(AboutContext);

export const DOOR_TITLES: Readonly<Record<string, string>> = {
  graphql: 'GraphQL',
  rest: 'REST',
  management: 'Management',
  webhook: 'Webhook',
  portal: 'Portal',
};
