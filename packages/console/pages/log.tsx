import { useCallback, useEffect, useRef, useState } from 'react';
import { useLive } from '../data/api.ts';
import { formatTime } from '../data/format.ts';
import { goTo, linkTo, type Route } from '../data/route.ts';
import { type Filter, Filters } from '../parts/filters.tsx';
import { Card, Empty, Page, PauseButton } from '../parts/parts.tsx';

interface LogLine {
  readonly number: number;
  readonly entry: Readonly<Record<string, unknown>>;
}

interface LogEvent {
  readonly skipped: number;
  readonly lines: readonly LogLine[];
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
const MAX_LINES = 1_000;

const FILTERS: readonly Filter[] = [
  {
    kind: 'choice',
    name: 'level',
    label: 'Level',
    options: LEVELS.map((each) => (each === 'trace' ? ['', 'all'] : [each, `${each} and worse`])),
  },
  { kind: 'text', name: 'text', label: 'Text', hint: 'in any field', isWide: true },
];

/** The latest log entries, live. */
export function Log({ route: { query } }: { route: Route }) {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [isPaused, setPaused] = useState(false);
  const held = useRef<LogLine[]>([]);
  const place = useRef<HTMLDivElement | null>(null);
  const isAtEnd = useRef(true);
  const level = query.get('level') ?? 'trace';
  const text = query.get('text') ?? '';

  const append = useCallback((added: readonly LogLine[]) => {
    setLines((before) => {
      const last = before.at(-1)?.number ?? 0;
      // A restarted service counts from one.
      const known = (added[0]?.number ?? 0) <= last && (added.at(-1)?.number ?? 0) < last ? [] : before;
      const from = known.at(-1)?.number ?? 0;
      return [...known, ...added.filter(({ number }) => number > from)].slice(-MAX_LINES);
    });
  }, []);
  useLive('log', {
    log: (event: LogEvent) => {
      if (isPaused) held.current = [...held.current, ...event.lines].slice(-MAX_LINES);
      else append(event.lines);
    },
  });
  useEffect(() => {
    if (isPaused) return;
    append(held.current);
    held.current = [];
  }, [isPaused, append]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines scroll the list to its end.
  useEffect(() => {
    const list = place.current;
    if (list !== null && isAtEnd.current) list.scrollTop = list.scrollHeight;
  }, [lines]);

  const least = LEVELS.indexOf(level as (typeof LEVELS)[number]);
  const shown = lines.filter(
    ({ entry }) =>
      LEVELS.indexOf(String(entry.level) as (typeof LEVELS)[number]) >= least &&
      (text === '' || JSON.stringify(entry).toLowerCase().includes(text.toLowerCase())),
  );
  return (
    <Page
      title="Log"
      about="The latest log entries of this process; secrets are redacted."
      actions={<PauseButton isPaused={isPaused} onChange={setPaused} />}
    >
      <Filters
        filters={FILTERS}
        values={{ level: query.get('level') ?? '', text }}
        isLive
        onApply={(filters) => goTo(linkTo('log', '', filters), true)}
      />
      <Card>
        {shown.length === 0 ? (
          <Empty icon="log" title={lines.length === 0 ? 'Nothing logged yet' : 'Nothing matches'}>
            Entries appear here as soon as they are written.
          </Empty>
        ) : (
          <section
            className="log"
            ref={place}
            aria-label="Log entries"
            // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach what scrolls.
            tabIndex={0}
            onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
              isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
            }}
          >
            {shown.map(({ number, entry }) => (
              <Entry key={number} entry={entry} />
            ))}
          </section>
        )}
      </Card>
    </Page>
  );
}

function Entry({ entry: { level, time, msg, logger, err, ...fields } }: { entry: LogLine['entry'] }) {
  const error = Object(err) as { readonly message?: string; readonly stack?: string };
  const rest = Object.entries(fields);
  return (
    <div className="log-line">
      <time>{formatTime(String(time))}</time>
      <span className={`level ${String(level)}`}>{String(level).toUpperCase()}</span>
      <span className="log-text">
        {logger !== undefined && <span className="quiet">{String(logger)} </span>}
        {String(msg ?? '')}
        {rest.map(([name, value]) => (
          <span key={name} className="log-field">
            {name}=<b>{typeof value === 'string' ? value : JSON.stringify(value)}</b>
          </span>
        ))}
        {err !== undefined && (
          <details>
            <summary>{error.message ?? 'error'}</summary>
            <pre className="wrap">{error.stack ?? JSON.stringify(err, null, 2)}</pre>
          </details>
        )}
      </span>
    </div>
  );
}
