import { GenerationalCache } from '../core/generational-cache.ts';
import type { UserFormat, UserPage } from '../relations/pages.ts';

/** Maximum size of all cached pages, in bytes: some 120,000 short users. */
const MAX_BYTES = 8 * 1024 * 1024;
/** What an entry takes beside its text, about, in bytes. */
const ENTRY_BYTES = 200;

/**
 * The pages of users at one version of the database, bounded in bytes; those go first that nobody has asked for lately.
 * Whoever asks names the version of the moment, and that at which a page was read.
 */
export class PageCache<V extends string | number> {
  readonly #maxBytes: number;
  #version: V | undefined;
  #pages: GenerationalCache<UserPage>;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
    this.#pages = new GenerationalCache(maxBytes);
  }

  /** The bytes of all pages. */
  get bytes(): number {
    return this.#pages.bytes;
  }

  /** Whether there is a page for a key, of whichever version. */
  has(key: string): boolean {
    return this.#pages.get(key) !== undefined;
  }

  /** The page for a key, if it is of this version. */
  find(version: V, key: string): UserPage | undefined {
    return version === this.#version ? this.#pages.get(key) : undefined;
  }

  /**
   * Keeps a page, and forgets those of other versions. Of a list that is larger than the cache only the beginning is kept,
   * where clients that do not read hold the same pages: all of it would push out everything else, and itself too, before
   * anybody asks for one of its pages again.
   */
  add(version: V, key: string, page: UserPage): void {
    if (page.more && page.lastId * (page.bytes.length / page.count) > this.#maxBytes) return;
    if (version !== this.#version) {
      this.#version = version;
      this.#pages = new GenerationalCache(this.#maxBytes);
    }
    this.#pages.set(key, page, page.bytes.length + ENTRY_BYTES);
  }
}

/** What names a page among those of one version. */
export function pageKey(format: UserFormat, after: number, upTo: number): string {
  return `${format} ${after} ${upTo}`;
}
