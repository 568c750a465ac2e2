import { GenerationalCache } from '../core/generational-cache.ts';
import type { UserFormat, UserPage } from '../relations/lists.ts';

/** Maximum total size of cached pages in bytes: about 120,000 short users. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Estimated size of an entry besides its text, in bytes. */
const ENTRY_BYTES = 200;

/**
 * Cached pages of users for one version of the database, bounded in bytes; the least recently used are
 * evicted first. Callers pass the current version to `find` and the version of the read to `add`.
 */
export class PageCache<V extends string | number> {
  readonly #maxBytes: number;
  #version: V | undefined;
  #pages: GenerationalCache<UserPage>;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
    this.#pages = new GenerationalCache(maxBytes);
  }

  /** Total size of the cached pages, in bytes. */
  get bytes(): number {
    return this.#pages.bytes;
  }

  /** Whether a page is cached for a key, at any version. */
  has(key: string): boolean {
    return this.#pages.get(key) !== undefined;
  }

  /** The cached page for a key, if it has this version. */
  find(version: V, key: string): UserPage | undefined {
    return version === this.#version ? this.#pages.get(key) : undefined;
  }

  /**
   * Caches a page and drops pages of other versions. Of a list larger than the cache, only the beginning is
   * cached, where stalled clients share pages: the whole list would evict all other pages, and its own before
   * they are read again.
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

/** The key of a page within one version. */
export function pageKey(format: UserFormat, after: number, upTo: number): string {
  return `${format} ${after} ${upTo}`;
}
