import type { Logger } from 'pino';

/** A logger whose level can be changed while it is in use, such as one of pino. */
interface Leveled {
  level: string;
}

/** The configured level of a logger, if any, and its effective level. */
interface LoggerState {
  readonly configured: LogLevel | undefined;
  readonly effective: LogLevel;
  /** When a temporary level ends, in milliseconds since 1970. */
  readonly until: number | undefined;
}

interface Temporary {
  readonly level: LogLevel | undefined;
  readonly until: number;
  readonly timer: NodeJS.Timeout;
}

interface Named {
  readonly logger: Leveled;
  /** The level set without a time limit. */
  lasting: LogLevel | undefined;
  temporary: Temporary | undefined;
}

/** The name of the logger from which the others inherit their level. */
const ROOT = 'ROOT';

/**
 * The loggers of the process by name. A logger without a configured level inherits that of ROOT, and ROOT the
 * level with which the log was opened. Disposing of it clears the timers of temporary levels.
 */
export class Loggers implements Disposable {
  readonly #root: Logger;
  readonly #children = new Map<string, Logger>();
  readonly #start: LogLevel;
  readonly #named = new Map<string, Named>();

  constructor(root: Logger) {
    this.#root = root;
    this.#start = LOG_LEVELS.find((level) => level === root.level) ?? 'info';
    this.#named.set(ROOT, { logger: root, lasting: undefined, temporary: undefined });
  }

  /** The logger of a part of the service, which names itself in every entry; one object per name. */
  child(name: string): Logger {
    let child = this.#children.get(name);
    if (child === undefined) {
      child = this.#root.child({ logger: name });
      this.#children.set(name, child);
      this.add(name, child);
    }
    return child;
  }

  add(name: string, logger: Leveled): void {
    if (this.#named.has(name)) throw new TypeError(`The logger ${name} exists already`);
    this.#named.set(name, { logger, lasting: undefined, temporary: undefined });
    this.#apply();
  }

  /** ROOT first, then in the order of addition. */
  names(): readonly string[] {
    return [...this.#named.keys()];
  }

  /** The state of a logger; undefined for an unknown name. */
  state(name: string): LoggerState | undefined {
    const named = this.#named.get(name);
    if (named === undefined) return undefined;
    const configured = configuredLevel(named) ?? (name === ROOT ? this.#start : undefined);
    return { configured, effective: configured ?? this.#rootLevel(), until: named.temporary?.until };
  }

  /** Sets or removes a level, with `forMs` (at most 24 days) for a time. Ignores an unknown name. */
  setLevel(name: string, level: LogLevel | undefined, forMs?: number): void {
    const named = this.#named.get(name);
    if (named === undefined) return;
    clearTimeout(named.temporary?.timer);
    named.temporary = undefined;
    if (forMs === undefined) named.lasting = level;
    else {
      const end = () => {
        named.temporary = undefined;
        this.#apply();
      };
      named.temporary = { level, until: Date.now() + forMs, timer: setTimeout(end, forMs).unref() };
    }
    this.#apply();
  }

  [Symbol.dispose](): void {
    for (const { temporary } of this.#named.values()) clearTimeout(temporary?.timer);
  }

  #rootLevel(): LogLevel {
    const root = this.#named.get(ROOT);
    return (root && configuredLevel(root)) ?? this.#start;
  }

  #apply(): void {
    const root = this.#rootLevel();
    for (const named of this.#named.values()) named.logger.level = configuredLevel(named) ?? root;
  }
}

function configuredLevel({ lasting, temporary }: Named): LogLevel | undefined {
  return temporary === undefined ? lasting : temporary.level;
}

/** Maximum number of entries, and of their characters. */
const MAX_ENTRIES = 1_000;
const MAX_CHARACTERS = 512 * 1024;

/** An entry of the log: its number since the start, and the written line, one JSON object. */
interface TailEntry {
  readonly number: number;
  readonly line: string;
}

/** Keeps the last entries of the log, bounded in number and size. */
export class LogTail {
  readonly #entries: TailEntry[] = [];
  #from = 0;
  #number = 0;
  #characters = 0;
  #listener: (() => void) | undefined;

  /** Called after each entry; there is one listener, which must be fast. */
  set onEntry(listener: (() => void) | undefined) {
    this.#listener = listener;
  }

  /** The number of the latest entry; 0 before the first. */
  get latest(): number {
    return this.#number;
  }

  /** Adds a line and returns it. */
  add(line: string): string {
    this.#entries.push({ number: ++this.#number, line });
    this.#characters += line.length;
    while (this.#entries.length - this.#from > MAX_ENTRIES || this.#characters > MAX_CHARACTERS) this.#drop();
    this.#listener?.();
    return line;
  }

  /** The kept entries with higher numbers, oldest first. */
  after(number: number): readonly TailEntry[] {
    const kept = this.#entries.slice(this.#from);
    return kept.filter((entry) => entry.number > number);
  }

  /** Removes the oldest entry; shortens the array only occasionally. */
  #drop(): void {
    this.#characters -= this.#entries[this.#from]?.line.length ?? 0;
    this.#from++;
    if (this.#from < MAX_ENTRIES) return;
    this.#entries.splice(0, this.#from);
    this.#from = 0;
  }
}

/** Log levels, from nothing to everything. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/** The name of a level, in lower case. */
type LogLevel = (typeof LOG_LEVELS)[number];
