import { GenerationalCache } from '../../core/generational-cache.ts';
import { sha256 } from './sha256.ts';

/** What an entry takes beside its text, in bytes: the hash, the entry and its place in the map. */
const ENTRY_BYTES = 512;

/** The texts that clients have registered by their SHA-256, bounded in bytes (Apollo's automatic persisted queries). */
export class PersistedQueries {
  readonly #texts: GenerationalCache<string>;

  constructor(maxBytes: number) {
    this.#texts = new GenerationalCache(maxBytes);
  }

  /** The text with this hash, if it is registered. */
  find(hash: string): string | undefined {
    return this.#texts.get(hash);
  }

  /** Whether the hash is that of the text; one that is registered is not hashed again. */
  matches(hash: string, text: string): boolean {
    return this.#texts.get(hash) === text || sha256(text) === hash;
  }

  /** Registers a text by the hash that matches it. */
  register(hash: string, text: string): void {
    if (this.#texts.get(hash) === undefined) this.#texts.set(hash, text, ENTRY_BYTES + 2 * text.length);
  }
}
