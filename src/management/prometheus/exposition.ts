import type { Measurement, Series, Statistic } from '../../observability/metrics/meter.ts';
import type { Metrics } from '../../observability/metrics/metrics.ts';
import { type Family, familiesOf, namesOf } from './family.ts';
import type { Format } from './format.ts';
import { boundText, labelsText, numberText, samplePrefix } from './text.ts';

/** Lines per chunk: about half a millisecond of work. */
export const CHUNK_LINES = 500;
/** A chunk with fewer lines has at most so many characters, and one line. */
const CHUNK_LENGTH = 64 * 1024;

/** The constant part of a series: its lines up to their values. */
interface SeriesLines {
  readonly buckets: readonly string[];
  readonly samples: readonly string[];
}

/** A family with the lines of its series, cached by position: series keep theirs. */
interface Prepared {
  readonly family: Family;
  readonly names: ReadonlySet<string>;
  readonly lines: SeriesLines[];
}

/** The meters as text for Prometheus, a chunk at a time. */
export class Exposition {
  readonly #metrics: Metrics;
  readonly #onConflict: (meter: string) => void;
  #meterNames: readonly string[] | undefined;
  #prepared: readonly Prepared[] = [];

  /** `onConflict` is called for a meter that is left out because another one has taken one of its names. */
  constructor(metrics: Metrics, onConflict: (meter: string) => void = () => {}) {
    this.#metrics = metrics;
    this.#onConflict = onConflict;
  }

  /**
   * The text in chunks of about CHUNK_LINES lines, each read from the meters on demand. With `included` only the
   * families that have one of these names.
   */
  *chunks(format: Format, included?: ReadonlySet<string>): Generator<string, void> {
    let text = '';
    let count = 0;
    for (const { family, names, lines } of this.#families()) {
      if (included !== undefined && !overlap(included, names)) continue;
      let place = 0;
      for (const series of family.meter.series()) {
        if (place === 0) text += format.head(family);
        const known = lines[place] ?? linesOf(family, series);
        lines[place++] = known;
        text += render(family, series, known);
        count += known.samples.length + known.buckets.length;
        if (count < CHUNK_LINES && text.length < CHUNK_LENGTH) continue;
        yield text;
        text = '';
        count = 0;
      }
    }
    if (text !== '' || format.end !== '') yield text + format.end;
  }

  #families(): readonly Prepared[] {
    const names = this.#metrics.names();
    if (names === this.#meterNames) return this.#prepared;
    const known = new Map(this.#prepared.map((prepared) => [prepared.family.name, prepared]));
    const taken = new Set<string>();
    const prepared: Prepared[] = [];
    for (const meter of this.#metrics.meters()) {
      const families = familiesOf(meter).map((family) => ({ family, names: namesOf(family), lines: [] }));
      if (families.some((family) => overlap(taken, family.names))) {
        this.#onConflict(meter.name);
        continue;
      }
      for (const fresh of families) {
        for (const name of fresh.names) taken.add(name);
        const old = known.get(fresh.family.name);
        prepared.push(old?.family.meter === meter ? old : fresh);
      }
    }
    this.#meterNames = names;
    this.#prepared = prepared;
    return prepared;
  }
}

function overlap(some: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  for (const other of others) if (some.has(other)) return true;
  return false;
}

function linesOf({ meter, samples, bucketName }: Family, { tags }: Series): SeriesLines {
  const labels = labelsText(tags);
  const comma = labels === '' ? '' : ',';
  const bounds = bucketName === undefined ? [] : [...(meter.buckets ?? []), Infinity];
  return {
    buckets: bounds.map((bound) =>
      samplePrefix(bucketName ?? '', `${labels}${comma}le="${boundText(bound)}"`),
    ),
    samples: samples.map(({ name }) => samplePrefix(name, labels)),
  };
}

function render({ samples }: Family, series: Series, lines: SeriesLines): string {
  const measurements = series.measure();
  let text = '';
  if (lines.buckets.length > 0) {
    const counts = series.bucketCounts ?? [];
    let upToHere = 0;
    for (let i = 0; i < lines.buckets.length; i++) {
      upToHere += counts[i] ?? 0;
      text += `${lines.buckets[i]}${upToHere}\n`;
    }
  }
  for (let i = 0; i < samples.length; i++) {
    const value = measured(measurements, samples[i]?.statistic);
    if (value !== undefined) text += `${lines.samples[i]}${numberText(value)}\n`;
  }
  return text;
}

function measured(
  measurements: readonly Measurement[],
  statistic: Statistic | undefined,
): number | undefined {
  for (const measurement of measurements) {
    if (measurement.statistic === statistic) return measurement.value;
  }
  return undefined;
}
