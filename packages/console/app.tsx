import { useEffect, useState } from 'react';
import { type About, AboutContext } from './data/about.ts';
import { type Connection, watchConnection } from './data/live.ts';
import { useRoute } from './data/route.ts';
import { useData } from './data/use-data.ts';
import { PAGES } from './pages.tsx';
import { Empty, Page } from './parts/parts.tsx';
import { Toasts } from './parts/toasts.tsx';
import { Shell } from './shell.tsx';

/** The console: the frame, and the page that the URL names. */
export function App() {
  const route = useRoute();
  const [connection, setConnection] = useState<Connection>('connecting');
  useEffect(() => watchConnection(setConnection), []);
  // Polls more often while the service is lost.
  const about = useData<About>('about', connection === 'lost' ? 3_000 : 30_000);
  const page = PAGES.find(({ id }) => id === route.page);
  const closed = about.value?.closed[page?.needs ?? ''];

  useEffect(() => {
    document.title = `${page?.title ?? 'Not found'} · Portico console`;
    // The new page begins at its top.
    document.getElementById('main')?.scrollTo(0, 0);
  }, [page]);

  return (
    <AboutContext value={about.value}>
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
    </AboutContext>
  );
}
