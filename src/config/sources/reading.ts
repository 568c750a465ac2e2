import type { OptionKey } from '../options/options.ts';
import type { Parsed } from '../options/parse.ts';

/** A value of one source, with the place it came from. */
export interface Found {
  readonly value: unknown;
  readonly origin: string;
}

/** What one source of configuration says. */
export interface Reading {
  readonly found: ReadonlyMap<OptionKey, Found>;
  /** The options that this source sets but to nothing usable; each has its line in `problems`. */
  readonly broken: ReadonlySet<OptionKey>;
  readonly problems: readonly string[];
}

/** A reading while its source is being read. */
export interface Gathering extends Reading {
  readonly found: Map<OptionKey, Found>;
  readonly broken: Set<OptionKey>;
  readonly problems: string[];
}

export function startReading(): Gathering {
  return { found: new Map(), broken: new Set(), problems: [] };
}

/** Takes over what was parsed for an option: its value, or that it is broken and why. */
export function take(reading: Gathering, key: OptionKey, origin: string, parsed: Parsed): void {
  if ('value' in parsed) {
    reading.found.set(key, { value: parsed.value, origin });
  } else {
    reading.broken.add(key);
    reading.problems.push(parsed.problem);
  }
}
