import type { Meter, Series, Tag } from './meter.ts';

export interface AliasOptions {
  /** That of the source when absent. */
  readonly description?: string;
  /** Tags that are called differently here, by their names at the source. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Tags that every series has here in addition. */
  readonly add?: Readonly<Record<string, string>>;
}

/** A view: the series of another meter under another name, for programs that look for that name. */
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
