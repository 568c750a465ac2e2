import type { ReactElement } from 'react';
import type { Route } from './data/route.ts';
import { Deliveries } from './pages/deliveries.tsx';
import { Environment } from './pages/environment.tsx';
import { Log } from './pages/log.tsx';
import { Loggers } from './pages/loggers.tsx';
import { Metrics } from './pages/metrics.tsx';
import { Overview } from './pages/overview.tsx';
import { Requests } from './pages/requests.tsx';
import { Threads } from './pages/threads.tsx';
import { Users } from './pages/users.tsx';
import type { IconName } from './parts/icon.tsx';

/** A page of the console. */
interface PageEntry {
  /** The id in the URL. */
  readonly id: string;
  readonly title: string;
  readonly icon: IconName;
  /** The endpoint that it needs; without it the page is not offered. */
  readonly needs?: string;
  readonly View: (props: { route: Route }) => ReactElement;
}

/** All pages, in the order of the navigation. */
export const PAGES: readonly PageEntry[] = [
  { id: 'overview', title: 'Overview', icon: 'overview', View: Overview },
  { id: 'deliveries', title: 'Deliveries', icon: 'deliveries', needs: 'deliveries', View: Deliveries },
  { id: 'users', title: 'Users', icon: 'users', needs: 'users', View: Users },
  { id: 'requests', title: 'Requests', icon: 'requests', needs: 'requests', View: Requests },
  { id: 'loggers', title: 'Loggers', icon: 'loggers', needs: 'loggers', View: Loggers },
  { id: 'log', title: 'Log', icon: 'log', needs: 'logtail', View: Log },
  { id: 'metrics', title: 'Metrics', icon: 'metrics', needs: 'metrics', View: Metrics },
  { id: 'environment', title: 'Environment', icon: 'environment', needs: 'env', View: Environment },
  { id: 'threads', title: 'Threads', icon: 'threads', needs: 'threaddump', View: Threads },
];
