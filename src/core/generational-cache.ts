interface Entry<V> {
  readonly value: V;
  bytes: number;
}

interface Generation<V> {
  readonly entries: Map<string, Entry<V>>;
  bytes: number;
}

/**
 * A map with text keys, bounded in bytes, that evicts entries not used lately. It keeps two generations: a
 * used entry moves to the young one, and when the young one would exceed half of the bytes, it replaces the
 * old one. A hit costs one lookup.
 */
export class GenerationalCache<V> {
  readonly #maxBytes: number;
  #young: Generation<V> = { entries: new Map(), bytes: 0 };
  #old: Generation<V> = { entries: new Map(), bytes: 0 };

  /** `maxBytes` bounds the sum of the sizes given to `set` and `grow`; 0 caches nothing. */
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

  /** Adds a value for a new key, unless it would take more than half of the capacity. */
  set(key: string, value: V, bytes: number): void {
    if (2 * bytes > this.#maxBytes) return;
    if (2 * (this.#young.bytes + bytes) > this.#maxBytes) this.#age();
    this.#young.entries.set(key, { value, bytes });
    this.#young.bytes += bytes;
    this.#bound();
  }

  /** Removes an entry, if there is one. */
  delete(key: string): void {
    for (const generation of [this.#young, this.#old]) {
      generation.bytes -= generation.entries.get(key)?.bytes ?? 0;
      generation.entries.delete(key);
    }
  }

  /** Adds to the size of an entry; removes an entry that takes more than half of the capacity. */
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

  /** Drops the old generation if it grew so much that both together exceed the capacity. */
  #bound(): void {
    if (this.bytes > this.#maxBytes) this.#old = { entries: new Map(), bytes: 0 };
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = { entries: new Map(), bytes: 0 };
  }
}
