import type { Meter, Statistic } from '../../observability/metrics/meter.ts';

/** One measurement of a series, by its Prometheus name. */
export interface Sample {
  readonly statistic: Statistic;
  readonly name: string;
}

/** A metric family of Prometheus: the series of one meter, or of one aspect of it. */
export interface Family {
  readonly meter: Meter;
  /** The name in OpenMetrics: without the suffix of a counter. */
  readonly name: string;
  /** The name in the older format. */
  readonly textName: string;
  readonly type: 'counter' | 'gauge' | 'summary' | 'histogram';
  /** Ends the name, as OpenMetrics wants it. */
  readonly unit: string | undefined;
  readonly samples: readonly Sample[];
  /** The name of each bucket; undefined when it is no histogram. */
  readonly bucketName: string | undefined;
}

/**
 * The families of a meter. All names follow one scheme: dots become underscores, the base unit ends
 * the name, and then comes the suffix of the type. `process.cpu`, a counter of seconds, is
 * process_cpu_seconds_total. A timer is a summary (a histogram when it has buckets) and, as in Micrometer,
 * a gauge of its recent maximum: `_seconds_count`, `_seconds_sum`, `_seconds_max`.
 * The meters of the runtime are named so that this gives the names which dashboards for Node look for.
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
        // A unit has to end the name, and here the aspect does.
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

/** Every name of a family, in either format. */
export function namesOf({ name, textName, samples, bucketName }: Family): ReadonlySet<string> {
  const names = new Set([name, textName, ...samples.map((sample) => sample.name)]);
  if (bucketName !== undefined) names.add(bucketName);
  return names;
}
