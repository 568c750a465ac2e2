import type { OptionKey } from '../options/options.ts';
import type { Parsed } from '../options/parse.ts';

/** A value of one source, with its origin. */
export interface Found {
  readonly value: unknown;
  readonly origin: string;
}

/** The options that one source sets, parsed. */
export interface Reading {
  readonly found: ReadonlyMap<OptionKey, Found>;
  /** The options with an invalid value in this source; each has a line in `problems`. */
  readonly broken: ReadonlySet<OptionKey>;
  readonly problems: readonly string[];
}

/** A reading under construction. */
export interface Gathering extends Reading {
  readonly found: Map<OptionKey, Found>;
  readonly broken: Set<OptionKey>;
  readonly problems: string[];
}

/** A reading that has found nothing yet. */
export function startReading(): Gathering {
  return { found: new Map(), broken: new Set(), problems: [] };
}

/** Records the parsed value of an option, or its problem. */
export function take(reading: Gathering, key: OptionKey, origin: string, parsed: Parsed): void {
  if ('value' in parsed) {
    reading.found.set(key, { value: parsed.value, origin });
  } else {
    reading.broken.add(key);
    reading.problems.push(parsed.problem);
  }
}
