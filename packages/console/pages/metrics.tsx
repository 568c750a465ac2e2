import { useEffect, useMemo, useState } from 'react';
import { read } from '../data/api.ts';
import { formatNumber, formatValue } from '../data/format.ts';
import { goTo, linkTo, type Route } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { DataTable } from '../parts/data-table.tsx';
import { Choice } from '../parts/filters.tsx';
import { Card, Empty, Notice, Page, Waiting } from '../parts/parts.tsx';
import { Plot } from '../plots/plot.tsx';

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
            <div className="field">
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

interface Measured {
  readonly name: string;
  readonly description?: string;
  readonly baseUnit?: string;
  readonly measurements: readonly { readonly statistic: string; readonly value: number }[];
  readonly availableTags: readonly { readonly tag: string; readonly values: readonly string[] }[];
}

/** A reading of the meter, or of each value of the selected tag. */
type Reading = Readonly<Record<string, number>>;

interface Drawn {
  readonly times: readonly number[];
  readonly readings: readonly Reading[];
}

const INTERVAL = 2_000;
const POINTS = 300;
/** Maximum number of lines that can be told apart. */
const MAX_LINES = 6;

/** One meter, plotted from now on: counts as rates, gauges as values. */
function Meter({ name, split, onSplit }: { name: string; split: string; onSplit: (tag: string) => void }) {
  const { value, error } = useData<Measured>(`metrics/${encodeURIComponent(name)}`, INTERVAL);
  const [drawn, setDrawn] = useState<Drawn>({ times: [], readings: [] });
  const [problem, setProblem] = useState('');
  const tag = value?.availableTags.find((each) => each.tag === split);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each new value is one reading.
  useEffect(() => {
    if (value === undefined) return;
    let isCurrent = true;
    const add = (reading: Reading) => {
      if (!isCurrent) return;
      setDrawn(({ times, readings }) => ({
        times: [...times, Date.now()].slice(-POINTS),
        readings: [...readings, reading].slice(-POINTS),
      }));
    };
    if (split === '') add({ [name]: mainOf(value) });
    else if (tag !== undefined) {
      readSplit(name, split, tag.values.slice(0, MAX_LINES)).then(add, (failure: Error) =>
        setProblem(failure.message),
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [value]);

  const isCount = value?.measurements.some(({ statistic }) => statistic === 'COUNT') === true;
  const lines = useMemo(() => linesOf(drawn, isCount), [drawn, isCount]);
  if (value === undefined || error !== undefined) {
    return (
      <Card>
        <Waiting error={error} what="This meter" />
      </Card>
    );
  }
  const unit = isCount ? '1/s' : (value.baseUnit ?? '');
  const to = drawn.times.at(-1) ?? Date.now();
  return (
    <div className="meter">
      <Card title={name} note={value.baseUnit}>
        <div className="card-body">
          <p className="quiet">{value.description}</p>
          {value.availableTags.length > 0 && (
            <Choice
              label="Split by"
              options={[
                ['', 'nothing'],
                ...value.availableTags.map(({ tag, values }) => [tag, `${tag} (${values.length})`] as const),
              ]}
              value={split}
              onPick={onSplit}
            />
          )}
        </div>
      </Card>
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {tag !== undefined && tag.values.length > MAX_LINES && (
        <Notice tone="quiet">
          {MAX_LINES} of {tag.values.length} values are shown.
        </Notice>
      )}
      <Plot
        title={isCount ? 'Per second' : 'Value'}
        unit={unit}
        times={drawn.times}
        lines={lines}
        from={to - 120_000}
        to={to}
      />
      <Card title="Now">
        <DataTable
          label="Measurements"
          rows={value.measurements}
          keyOf={({ statistic }) => statistic}
          columns={[
            {
              title: 'Statistic',
              isRowHead: true,
              cell: ({ statistic }) => WORDS[statistic] ?? statistic,
            },
            {
              title: 'Value',
              className: 'number',
              cell: ({ statistic, value: measured }) =>
                statistic === 'COUNT' ? formatNumber(measured) : formatValue(measured, value.baseUnit ?? ''),
            },
          ]}
        />
      </Card>
    </div>
  );
}

const WORDS: Readonly<Record<string, string>> = {
  COUNT: 'Count',
  TOTAL_TIME: 'Total time',
  MAX: 'Recent maximum',
  VALUE: 'Value',
};

function mainOf({ measurements }: Measured): number {
  const found = measurements.find(({ statistic }) => statistic === 'COUNT' || statistic === 'VALUE');
  return found?.value ?? Number.NaN;
}

async function readSplit(name: string, tag: string, values: readonly string[]): Promise<Reading> {
  const entries = values.map(async (value) => {
    const query = new URLSearchParams({ tag: `${tag}:${value}` });
    const measured = await read<Measured>(`metrics/${encodeURIComponent(name)}?${query}`);
    return [value, mainOf(measured)] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Converts counts to rates between two readings. */
function linesOf({ times, readings }: Drawn, isCount: boolean) {
  const labels = [...new Set(readings.flatMap((reading) => Object.keys(reading)))];
  return labels.map((label) => ({
    label,
    values: readings.map((reading, i) => {
      const value = reading[label];
      if (value === undefined || !Number.isFinite(value)) return null;
      if (!isCount) return value;
      const before = readings[i - 1]?.[label];
      const seconds = ((times[i] ?? 0) - (times[i - 1] ?? 0)) / 1_000;
      return before === undefined || seconds <= 0 ? null : Math.max(0, value - before) / seconds;
    }),
  }));
}
