import { useState } from 'react';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Card, Empty, Page, Waiting } from '../../parts/parts.tsx';
import { Meter } from './metrics-meter.tsx';

/** All meters; the selected one is plotted while the page is open. */
export function Metrics({ route: { item, query } }: { route: Route }) {
  const { value, error } = useData<{ readonly names: readonly string[] }>('metrics');
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const names = (value?.names ?? []).filter((name) => name.includes(wanted));
  return (
    <Page title="Metrics" about="Plots any meter of this process from now on, optionally split by a tag.">
      {value === undefined || error !== undefined ? (
        <Card>
          <Waiting error={error} what="The list of meters" />
        </Card>
      ) : (
        <div className="metrics">
          <Card className="meters">
            <div className="meters-search">
              <input
                type="search"
                placeholder={`Search ${value.names.length} meters`}
                aria-label="Search meters"
                value={text}
                onChange={({ currentTarget }) => setText(currentTarget.value)}
              />
            </div>
            <nav aria-label="Meters">
              <ul>
                {names.map((name) => (
                  <li key={name}>
                    <a href={linkTo('metrics', name)} aria-current={name === item ? 'true' : undefined}>
                      {name}
                    </a>
                  </li>
                ))}
              </ul>
              {names.length === 0 && <p className="waiting">Nothing matches.</p>}
            </nav>
          </Card>
          {item === '' ? (
            <Card>
              <Empty icon="metrics" title="Choose a meter">
                It is read every two seconds while this page is visible.
              </Empty>
            </Card>
          ) : (
            <Meter
              key={`${item}|${query.get('split') ?? ''}`}
              name={item}
              split={query.get('split') ?? ''}
              onSplit={(tag) => goTo(linkTo('metrics', item, { split: tag || undefined }), true)}
            />
          )}
        </div>
      )}
    </Page>
  );
}
