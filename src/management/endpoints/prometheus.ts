import type { IncomingHttpHeaders } from 'node:http';
import type { RequestContext } from '@portico/transport';
import { parameterOf, preferred, type Weighted } from '../../core/negotiation.ts';
import type { Measurement, Meter, Series, Statistic, Tag } from '../../telemetry/meters.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { NEGOTIATED_HEADERS } from '../management-errors.ts';
import type { ManagementEndpoint, Operation } from '../operations.ts';

/** The prometheus endpoint: every meter in Prometheus's format; `includedNames` selects some. */
export function prometheusEndpoint(metrics: Metrics): ManagementEndpoint {
  return {
    id: 'prometheus',
    about: 'All measurements, for Prometheus to scrape.',
    routes(scope) {
      const exposition = new Exposition(metrics, (meter) =>
        scope.log.warn({ meter }, 'meter not exposed to Prometheus: name taken by another one'),
      );
      const head = ({ accept }: IncomingHttpHeaders) => {
        const { mediaType, version } = formatFor(accept);
        // Prometheus 3 refuses a scrape without a known content type.
        return { type: `${mediaType}; version=${version}; charset=utf-8`, headers: NEGOTIATED_HEADERS };
      };
      const get: Operation = ({ headers, query }) => {
        const chunks = exposition.chunks(formatFor(headers.accept), includedNames(query));
        return { status: 200, ...head(headers), body: piecesOf(chunks) };
      };
      return { '/prometheus': { get, head } };
    },
  };
}

/** Creates each chunk after the client has taken the previous one. */
async function* piecesOf(chunks: Iterable<string>): AsyncGenerator<string> {
  yield* chunks;
}

/** The `includedNames`, repeated or separated by commas; undefined without any. */
function includedNames(query: RequestContext['query']): ReadonlySet<string> | undefined {
  const { includedNames: given } = query as { readonly includedNames?: string | readonly string[] };
  if (given === undefined) return undefined;
  return new Set([given].flat().flatMap((names) => names.split(',')));
}

/** Lines per chunk: about half a millisecond of work. */
const CHUNK_LINES = 500;
/** Maximum length of a chunk with fewer lines, in characters; it contains at least one line. */
const CHUNK_LENGTH = 64 * 1024;

/** The constant part of a series: its lines up to their values. */
interface SeriesLines {
  readonly buckets: readonly string[];
  readonly samples: readonly string[];
}

/** A family with the lines of its series, cached by position: a series never changes its position. */
interface Prepared {
  readonly family: Family;
  readonly names: ReadonlySet<string>;
  readonly lines: SeriesLines[];
}

/** The meters as text for Prometheus, chunk by chunk. */
export class Exposition {
  readonly #metrics: Metrics;
  readonly #onConflict: (meter: string) => void;
  #meterNames: readonly string[] | undefined;
  #prepared: readonly Prepared[] = [];

  /** `onConflict` is called for a meter that is omitted because another one has taken one of its names. */
  constructor(metrics: Metrics, onConflict: (meter: string) => void = () => {}) {
    this.#metrics = metrics;
    this.#onConflict = onConflict;
  }

  /** The text in chunks of about CHUNK_LINES lines, read on demand; `included` selects families by name. */
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

interface Sample {
  readonly statistic: Statistic;
  readonly name: string;
}

/** A metric family of Prometheus: the series of one meter, or of one aspect of it. */
interface Family {
  readonly meter: Meter;
  /** The name in OpenMetrics: without a counter's suffix. */
  readonly name: string;
  /** The name in the older format. */
  readonly textName: string;
  readonly type: 'counter' | 'gauge' | 'summary' | 'histogram';
  /** The unit that ends the name, as OpenMetrics requires. */
  readonly unit: string | undefined;
  readonly samples: readonly Sample[];
  /** The name of each bucket; undefined if this is no histogram. */
  readonly bucketName: string | undefined;
}

/**
 * The families of a meter. All names follow one scheme: dots become underscores, then comes the base unit,
 * then the suffix of the type. `process.cpu`, a counter of seconds, is process_cpu_seconds_total. A timer is
 * a summary (a histogram if it has buckets) and, as in Micrometer, a gauge of its recent maximum:
 * `_seconds_count`, `_seconds_sum`, `_seconds_max`. With this scheme, the runtime's meters get the names that
 * dashboards for Node expect.
 */
export function familiesOf(meter: Meter): readonly Family[] {
  const name = baseName(meter);
  const shared = { meter, name, textName: name, unit: meter.unit, bucketName: undefined };
  switch (meter.type) {
    case 'counter': {
      const total = `${name}_total`;
      return [
        { ...shared, textName: total, type: 'counter', samples: [{ statistic: 'COUNT', name: total }] },
      ];
    }
    case 'gauge':
      return [{ ...shared, type: 'gauge', samples: [{ statistic: 'VALUE', name }] }];
    case 'timer': {
      const samples: readonly Sample[] = [
        { statistic: 'COUNT', name: `${name}_count` },
        { statistic: 'TOTAL_TIME', name: `${name}_sum` },
      ];
      const max = `${name}_max`;
      const ofMax: Family = {
        ...shared,
        name: max,
        textName: max,
        type: 'gauge',
        // A unit has to end the name, but here the aspect does.
        unit: undefined,
        samples: [{ statistic: 'MAX', name: max }],
      };
      if (meter.buckets === undefined) return [{ ...shared, type: 'summary', samples }, ofMax];
      return [{ ...shared, type: 'histogram', samples, bucketName: `${name}_bucket` }, ofMax];
    }
  }
}

function baseName({ name, type, unit }: Meter): string {
  let base = name.replaceAll('.', '_');
  if (type === 'counter') base = base.replace(/_total$/, '');
  return unit === undefined || base === unit || base.endsWith(`_${unit}`) ? base : `${base}_${unit}`;
}

function namesOf({ name, textName, samples, bucketName }: Family): ReadonlySet<string> {
  const names = new Set([name, textName, ...samples.map((sample) => sample.name)]);
  if (bucketName !== undefined) names.add(bucketName);
  return names;
}

interface Format {
  readonly mediaType: string;
  readonly version: string;
  /** The lines before the samples of a family. */
  head(family: Family): string;
  /** The last line. */
  readonly end: string;
}

/** The older format, which every scraper reads. */
export const TEXT: Format = {
  mediaType: 'text/plain',
  version: '0.0.4',
  head({ textName, type, meter }) {
    return `# HELP ${textName} ${helpText(meter.description, false)}\n# TYPE ${textName} ${type}\n`;
  },
  end: '',
};

/** Its successor, with units. */
export const OPEN_METRICS: Format = {
  mediaType: 'application/openmetrics-text',
  version: '1.0.0',
  head({ name, type, unit, meter }) {
    const unitLine = unit === undefined ? '' : `# UNIT ${name} ${unit}\n`;
    return `# TYPE ${name} ${type}\n${unitLine}# HELP ${name} ${helpText(meter.description, true)}\n`;
  },
  end: '# EOF\n',
};

const VERSIONS = new Map([TEXT, OPEN_METRICS].map(({ mediaType, version }) => [mediaType, version]));

/**
 * The format that an Accept header prefers; the older format if it accepts neither. Here, unlike elsewhere,
 * the version is part of the media type: a scraper lists the versions it reads.
 */
export function formatFor(accept: string | undefined): Format {
  const type = preferred(accept, [...VERSIONS.keys()], isOurVersion);
  return type === OPEN_METRICS.mediaType ? OPEN_METRICS : TEXT;
}

function isOurVersion(range: Weighted): boolean {
  const version = parameterOf(range, 'version');
  return version === undefined || version === VERSIONS.get(range.name);
}

/** A number as both formats write it. */
function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  if (value === -Infinity) return '-Inf';
  return String(value);
}

/** The upper bound of a bucket, always with a fraction, as OpenMetrics requires. */
function boundText(bound: number): string {
  const text = numberText(bound);
  return /^\d+$/.test(text) ? `${text}.0` : text;
}

/** Labels as written between braces. */
function labelsText(tags: readonly Tag[]): string {
  return tags.map(({ key, value }) => `${key.replaceAll('.', '_')}="${labelValue(value)}"`).join();
}

/** The text of a sample before its value. */
function samplePrefix(name: string, labels: string): string {
  return labels === '' ? `${name} ` : `${name}{${labels}} `;
}

/** Escapes a label's value. Prometheus would read a NUL as the end of the text. */
function labelValue(value: string): string {
  return value
    .replaceAll('\0', '\ufffd')
    .replaceAll('\\', '\\\\')
    .replaceAll('\n', '\\n')
    .replaceAll('"', '\\"');
}

/** A description on one line; only OpenMetrics escapes quotes in it. */
function helpText(description: string, quotes: boolean): string {
  const text = description.replaceAll('\0', '\ufffd').replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return quotes ? text.replaceAll('"', '\\"') : text;
}
