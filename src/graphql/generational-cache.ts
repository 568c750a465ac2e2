/**
 * A bounded map from texts that forgets what has not been used lately. It keeps two generations: what is used
 * moves to the young one, and when that is full the old one is forgotten as a whole. A hit costs one look-up.
 * Bounds are the number of entries and the length of their keys altogether, in characters.
 */
export class GenerationalCache<V> {
  readonly #maxEntries: number;
  readonly #maxLength: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();
  #length = 0;

  constructor(maxEntries: number, maxLength: number) {
    this.#maxEntries = maxEntries;
    this.#maxLength = maxLength;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(key: string): V | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const old = this.#old.get(key);
    if (old === undefined) return undefined;
    this.#old.delete(key);
    this.set(key, old);
    return old;
  }

  set(key: string, value: V): void {
    if (2 * key.length > this.#maxLength || this.#maxEntries === 0) return;
    const { size } = this.#young;
    if (2 * (size + 1) > this.#maxEntries || 2 * (this.#length + key.length) > this.#maxLength) {
      // A generation of one leaves no room for another when one is all.
      this.#old = 2 * size > this.#maxEntries ? new Map() : this.#young;
      this.#young = new Map();
      this.#length = 0;
    }
    this.#young.set(key, value);
    this.#length += key.length;
  }
}
