import { type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';
import { type About, AboutContext, useAbout } from './data/about.ts';
import { API, type Connection, watchConnection } from './data/api.ts';
import { type Failing, FailingContext, shownCount, useFailing } from './data/deliveries.ts';
import { type EndpointCounts, EndpointsContext, useEndpoints } from './data/endpoints.ts';
import { type Route, useRoute } from './data/route.ts';
import { useData } from './data/use-data.ts';
import { Deliveries } from './pages/deliveries.tsx';
import { Endpoints } from './pages/endpoints/endpoints.tsx';
import { Environment } from './pages/environment.tsx';
import { Log } from './pages/log.tsx';
import { Loggers } from './pages/loggers.tsx';
import { Metrics } from './pages/metrics.tsx';
import { Overview } from './pages/overview.tsx';
import { Relations } from './pages/relations/relations.tsx';
import { Requests } from './pages/requests.tsx';
import { Rules } from './pages/rules.tsx';
import { Threads } from './pages/threads.tsx';
import { Users } from './pages/users.tsx';
import { Icon, type IconName } from './parts/icon.tsx';
import { useKeptFocus } from './parts/kept-focus.ts';
import { Empty, Page, Status, type Tone } from './parts/parts.tsx';
import { Toasts } from './parts/toasts.tsx';

/** The console: the frame, and the page that the URL names. */
export function App() {
  const route = useRoute();
  const [connection, setConnection] = useState<Connection>('connecting');
  useEffect(() => watchConnection(setConnection), []);
  // Polls more often while the service is lost.
  const about = useData<About>('about', connection === 'lost' ? 3_000 : 30_000);
  const page = PAGES.find(({ id }) => id === route.page);
  const closed = about.value?.closed[page?.needs ?? ''];
  const hasDeliveries = about.value?.endpoints.includes('deliveries') === true;
  const failing = useData<Failing>(hasDeliveries ? 'deliveries/failing' : undefined, 5_000);
  const hasEndpoints = about.value?.endpoints.includes('webhookendpoints') === true;
  const endpoints = useData<EndpointCounts>(hasEndpoints ? 'webhookendpoints/counts' : undefined, 10_000);

  useEffect(() => {
    document.title = `${page?.title ?? 'Not found'} · Portico console`;
    // The new page begins at its top.
    document.getElementById('main')?.scrollTo(0, 0);
  }, [page]);

  return (
    <AboutContext value={about.value}>
      <FailingContext value={failing}>
        <EndpointsContext value={endpoints}>
          <Shell current={route.page} connection={connection}>
            {page === undefined ? (
              <Empty icon="search" title="There is no such page">
                <a href="#/overview">Go to the overview</a>
              </Empty>
            ) : closed !== undefined ? (
              <Page title={page.title}>
                <Empty icon="lock" title={`${page.title} are hidden here`}>
                  {closed}.
                </Empty>
              </Page>
            ) : (
              <page.View key={page.id} route={route} />
            )}
          </Shell>
          <Toasts />
        </EndpointsContext>
      </FailingContext>
    </AboutContext>
  );
}

const CONNECTIONS: Readonly<Record<Connection, readonly [Tone, string]>> = {
  connecting: ['quiet', 'Connecting'],
  live: ['good', 'Live'],
  lost: ['bad', 'Connection lost'],
  resting: ['quiet', 'Paused'],
};

/** The frame of every page: the navigation, and the identity of the service. */
function Shell({
  current,
  connection,
  children,
}: {
  current: string;
  connection: Connection;
  children: ReactNode;
}) {
  const about = useAbout();
  const [isOpen, setOpen] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigating closes the menu.
  useEffect(() => setOpen(false), [current]);

  const main = useRef<HTMLElement | null>(null);
  useKeptFocus(main);
  const dead = useFailing().value?.dead ?? 0;
  const disabled = useEndpoints().value?.counts.disabled ?? 0;

  const [tone, word] = CONNECTIONS[connection];
  const offered = PAGES.filter(
    ({ needs }) =>
      needs === undefined || about?.closed[needs] !== undefined || about?.endpoints.includes(needs) !== false,
  );
  return (
    <div className="shell">
      {/* biome-ignore lint/a11y/useValidAnchor: it is a link within the page, but the fragment names a page. */}
      <a
        href="#main"
        className="button primary skip"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <aside className={isOpen ? 'side open' : 'side'}>
        <div className="brand">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" fill="#3451d1" />
            <path
              fill="none"
              stroke="#ffffff"
              strokeWidth="2.6"
              strokeLinecap="round"
              d="M8 25V16a8 8 0 0 1 16 0v9M13 25v-8a3 3 0 0 1 6 0v8"
            />
          </svg>
          <span>
            <strong>Portico</strong>
            <small>{about === undefined ? 'console' : about.version}</small>
          </span>
          <button
            type="button"
            className="button menu"
            aria-expanded={isOpen}
            aria-controls="pages"
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? 'close' : 'menu'} />
            <span className="unseen">Pages</span>
          </button>
        </div>
        <nav id="pages" aria-label="Pages">
          <ul>
            {offered.map(({ id, title, icon }) => (
              <li key={id}>
                <a href={`#/${id}`} aria-current={id === current ? 'page' : undefined}>
                  <Icon name={icon} />
                  {title}
                </a>
                {id === 'deliveries' && dead > 0 && (
                  <a
                    className="dead-count"
                    href="#/deliveries?status=dead"
                    aria-label={`${shownCount(dead)} dead`}
                  >
                    {shownCount(dead)}
                  </a>
                )}
                {id === 'endpoints' && disabled > 0 && (
                  <a
                    className="dead-count"
                    href="#/endpoints?state=disabled"
                    aria-label={`${shownCount(disabled)} disabled`}
                  >
                    {shownCount(disabled)}
                  </a>
                )}
              </li>
            ))}
          </ul>
          <ul className="elsewhere">
            {elsewhere(about).map(([title, href]) => (
              <li key={title}>
                <a href={href}>
                  <Icon name="link" />
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <footer className="side-foot">
          <Status tone={tone}>{word}</Status>
          {about !== undefined && (
            <small>
              {about.process.host}, process {about.process.pid}
              {about.user !== null && (
                <>
                  <br />
                  signed in as {about.user}
                </>
              )}
              {!about.actions && (
                <>
                  <br />
                  read-only
                </>
              )}
            </small>
          )}
        </footer>
      </aside>
      <main id="main" tabIndex={-1} ref={main}>
        {connection === 'lost' && (
          <div className="notice bad" role="alert">
            The connection to the service is lost. The page shows the last known data; the console keeps
            trying to reconnect.
          </div>
        )}
        {children}
      </main>
    </div>
  );
}

/** The other pages of the service, if they are available. */
function elsewhere(about: About | undefined): readonly (readonly [title: string, href: string])[] {
  if (about === undefined) return [];
  const base = location.pathname.replace(/\/console\/?$/, '');
  const graphql = about.doors.find(({ name, page }) => name === 'graphql' && page);
  // The console serves the reference if it is not exposed otherwise.
  const reference = about.reference ? `${base}/docs` : `${API}docs`;
  return [
    ...(graphql === undefined ? [] : [['GraphiQL', graphql.url] as const]),
    ...(about.endpoints.includes('docs') ? [['API reference', reference] as const] : []),
    ['Management', base || '/'],
  ];
}

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
const PAGES: readonly PageEntry[] = [
  { id: 'overview', title: 'Overview', icon: 'overview', View: Overview },
  { id: 'deliveries', title: 'Deliveries', icon: 'deliveries', needs: 'deliveries', View: Deliveries },
  { id: 'endpoints', title: 'Endpoints', icon: 'send', needs: 'webhookendpoints', View: Endpoints },
  { id: 'users', title: 'Users', icon: 'users', needs: 'users', View: Users },
  { id: 'relations', title: 'Relations', icon: 'relations', needs: 'relations', View: Relations },
  { id: 'rules', title: 'Rules', icon: 'lock', needs: 'rules', View: Rules },
  { id: 'requests', title: 'Requests', icon: 'requests', needs: 'requests', View: Requests },
  { id: 'loggers', title: 'Loggers', icon: 'loggers', needs: 'loggers', View: Loggers },
  { id: 'log', title: 'Log', icon: 'log', needs: 'logtail', View: Log },
  { id: 'metrics', title: 'Metrics', icon: 'metrics', needs: 'metrics', View: Metrics },
  { id: 'environment', title: 'Environment', icon: 'environment', needs: 'env', View: Environment },
  { id: 'threads', title: 'Threads', icon: 'threads', needs: 'threaddump', View: Threads },
];
