import { useEffect, useMemo, useState } from 'react';
import { read } from '../../data/api.ts';
import { formatNumber, formatValue } from '../../data/format.ts';
import { useData } from '../../data/use-data.ts';
import { Card, Notice, Table, Waiting } from '../../parts/parts.tsx';
import { Plot } from '../../plots/plot.tsx';

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
export function Meter({
  name,
  split,
  onSplit,
}: {
  name: string;
  split: string;
  onSplit: (tag: string) => void;
}) {
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
            <label className="field split">
              <span>Split by</span>
              <select value={split} onChange={({ currentTarget }) => onSplit(currentTarget.value)}>
                <option value="">nothing</option>
                {value.availableTags.map((each) => (
                  <option key={each.tag} value={each.tag}>
                    {each.tag} ({each.values.length})
                  </option>
                ))}
              </select>
            </label>
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
        <Table label="Measurements">
          <tbody>
            {value.measurements.map(({ statistic, value: measured }) => (
              <tr key={statistic}>
                <th scope="row">{WORDS[statistic] ?? statistic}</th>
                <td className="number">
                  {statistic === 'COUNT'
                    ? formatNumber(measured)
                    : formatValue(measured, value.baseUnit ?? '')}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
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
