import { type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';
import { type Connection, watchConnection } from '../data/api.ts';
import { type Route, useRoute } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { useKeptFocus } from '../parts/kept-focus.ts';
import { Empty } from '../parts/parts.tsx';
import { Toasts } from '../parts/toasts.tsx';
import type { Me } from './data.ts';
import { Delivery } from './delivery.tsx';
import { Endpoint } from './endpoint/endpoint.tsx';
import { EditEndpoint, NewEndpoint } from './endpoint/endpoint-form.tsx';
import { Endpoints } from './endpoints.tsx';
import { EventTypes } from './event-types.tsx';
import { Events } from './events.tsx';
import { useSession } from './session.ts';

/** The title of the page, which the configuration says. */
const TITLE = document.title;

/** The portal of customers: the frame, and the page that the URL names. */
export function Portal() {
  const session = useSession();
  if (session !== 'open') return <NoLink hasEnded={session === 'ended'} />;
  return <Open />;
}

/** Says that the page needs a link, or a new one. */
function NoLink({ hasEnded }: { hasEnded: boolean }) {
  const title = hasEnded ? 'This link has expired' : 'This page needs a link';
  useEffect(() => {
    document.title = `${title} · ${TITLE}`;
  }, [title]);
  return (
    <main className="portal-main">
      <div className="card empty" role="alert">
        <h1>{title}</h1>
        <p className="empty-text">
          {hasEnded
            ? 'Links to this page are valid for a short time. Ask for a new link where you got this one; nothing of yours is lost.'
            : 'Open it by the link that you were given. It is shown again after a reload, but not in another tab.'}
        </p>
      </div>
    </main>
  );
}

interface PageEntry {
  readonly title: string;
  /** The entry of the navigation that it belongs to. */
  readonly of: string;
  readonly View: (props: { route: Route }) => ReactElement;
}

const PAGES: Readonly<Record<string, PageEntry>> = {
  endpoints: { title: 'Endpoints', of: 'endpoints', View: OneOrAll },
  new: { title: 'New endpoint', of: 'endpoints', View: NewEndpoint },
  edit: { title: 'Edit endpoint', of: 'endpoints', View: EditEndpoint },
  delivery: { title: 'Delivery', of: 'endpoints', View: Delivery },
  events: { title: 'Events', of: 'events', View: Events },
  'event-types': { title: 'Event types', of: 'event-types', View: EventTypes },
};

const NAVIGATION = ['endpoints', 'events', 'event-types'];

function OneOrAll({ route }: { route: Route }) {
  return route.item === '' ? <Endpoints /> : <Endpoint key={route.item} route={route} />;
}

function Open() {
  const route = useRoute();
  const page = PAGES[route.page];
  useEffect(() => {
    document.title = `${page?.title ?? 'Not found'} · ${TITLE}`;
  }, [page]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each page begins at its top.
  useEffect(() => {
    scrollTo(0, 0);
  }, [route.page, route.item]);
  return (
    <Frame current={page?.of}>
      {page === undefined ? (
        <Empty icon="search" title="There is no such page">
          <a href="#/endpoints">Go to the endpoints</a>
        </Empty>
      ) : (
        <page.View key={`${route.page}/${route.item}`} route={route} />
      )}
    </Frame>
  );
}

/** The frame of every page. */
function Frame({ current, children }: { current: string | undefined; children: ReactNode }) {
  const [connection, setConnection] = useState<Connection>('connecting');
  useEffect(() => watchConnection(setConnection), []);
  const me = useData<Me>('me');
  const main = useRef<HTMLElement | null>(null);
  useKeptFocus(main);
  return (
    <>
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
      <header className="portal-head">
        <p>
          <strong>{TITLE}</strong>
          {me.value !== undefined && <small className="break">{me.value.tenant}</small>}
        </p>
        <nav className="tabs" aria-label="Pages">
          {NAVIGATION.map((id) => (
            <a key={id} href={`#/${id}`} aria-current={id === current ? 'page' : undefined}>
              {PAGES[id]?.title}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" className="portal-main" tabIndex={-1} ref={main}>
        {connection === 'lost' && (
          <div className="notice bad" role="alert">
            The service does not answer. The page shows the last known data and keeps trying.
          </div>
        )}
        {children}
      </main>
      <Toasts />
    </>
  );
}
