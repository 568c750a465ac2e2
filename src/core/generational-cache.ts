interface Entry<V> {
  readonly value: V;
  bytes: number;
}

interface Generation<V> {
  readonly entries: Map<string, Entry<V>>;
  bytes: number;
}

/**
 * A map from texts, bounded in bytes, that forgets what has not been used lately. It keeps two generations: what is used
 * moves to the young one, and when that has half of the bytes the old one is forgotten as a whole. A hit costs one look-up.
 */
export class GenerationalCache<V> {
  readonly #maxBytes: number;
  #young: Generation<V> = { entries: new Map(), bytes: 0 };
  #old: Generation<V> = { entries: new Map(), bytes: 0 };

  /** `maxBytes`: of all entries together, as they are told with each; 0 remembers nothing. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes of all entries. */
  get bytes(): number {
    return this.#young.bytes + this.#old.bytes;
  }

  get(key: string): V | undefined {
    const young = this.#young.entries.get(key);
    if (young !== undefined) return young.value;
    const old = this.#old.entries.get(key);
    if (old === undefined) return undefined;
    this.#old.entries.delete(key);
    this.#old.bytes -= old.bytes;
    this.set(key, old.value, old.bytes);
    return old.value;
  }

  /** Remembers a value that is not remembered yet, unless it would take half of the room. */
  set(key: string, value: V, bytes: number): void {
    if (2 * bytes > this.#maxBytes) return;
    if (2 * (this.#young.bytes + bytes) > this.#maxBytes) this.#age();
    this.#young.entries.set(key, { value, bytes });
    this.#young.bytes += bytes;
    this.#bound();
  }

  /** Counts what an entry has grown by; one that takes half of the room is forgotten. */
  grow(key: string, bytes: number): void {
    const generation = this.#young.entries.has(key) ? this.#young : this.#old;
    const entry = generation.entries.get(key);
    if (entry === undefined) return;
    entry.bytes += bytes;
    generation.bytes += bytes;
    if (2 * entry.bytes > this.#maxBytes) {
      generation.entries.delete(key);
      generation.bytes -= entry.bytes;
    }
    if (2 * this.#young.bytes > this.#maxBytes) this.#age();
    this.#bound();
  }

  /** A generation that grew past its half before it became the old one leaves less room for the young one. */
  #bound(): void {
    if (this.bytes > this.#maxBytes) this.#old = { entries: new Map(), bytes: 0 };
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = { entries: new Map(), bytes: 0 };
  }
}
