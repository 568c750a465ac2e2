import type { Meter, Series, Tag } from './meter.ts';

export interface AliasOptions {
  /** Default: the description of the source. */
  readonly description?: string;
  /** Renamed tags: new names by their names at the source. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Constant tags added to every series. */
  readonly add?: Readonly<Record<string, string>>;
}

/** A view of another meter under another name, for programs that expect that name. */
export function aliasMeter(
  name: string,
  source: Meter,
  { description = source.description, rename = {}, add = {} }: AliasOptions,
): Meter {
  const added = Object.entries(add).map(([key, value]) => ({ key, value }));
  const renamed = ({ key, value }: Tag): Tag => ({ key: rename[key] ?? key, value });
  const views: Series[] = [];
  return {
    name,
    type: source.type,
    description,
    unit: source.unit,
    tagKeys: [...source.tagKeys.map((key) => rename[key] ?? key), ...Object.keys(add)],
    buckets: source.buckets,
    get overflowed() {
      return source.overflowed;
    },
    series() {
      let i = 0;
      for (const series of source.series()) {
        views[i] ??= viewOf(series, [...series.tags.map(renamed), ...added]);
        i++;
      }
      return views;
    },
  };
}

function viewOf(source: Series, tags: readonly Tag[]): Series {
  return {
    tags,
    measure: () => source.measure(),
    get bucketCounts() {
      return source.bucketCounts;
    },
  };
}
