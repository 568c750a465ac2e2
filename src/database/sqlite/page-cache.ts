import type { UserPage } from '../../users/database-user-store.ts';

/** Maximum size of all pages together, in characters: room for short lists; a long one would grow the heap by several times its length. */
const MAX_LENGTH = 2 * 1024 * 1024;

/** Caches pages of one version of the database; a newer version empties it. A page that does not fit is not cached. */
export class PageCache {
  readonly #maxLength: number;
  #pages = new Map<string, UserPage>();
  #version: number | undefined;
  #length = 0;

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength;
  }

  /** The cached page for `key` at this version, or the one that `make` reads. */
  find(version: number, key: string, make: () => UserPage): UserPage {
    if (version !== this.#version) {
      if (this.#pages.size > 0) this.#pages = new Map();
      this.#length = 0;
      this.#version = version;
    }
    const known = this.#pages.get(key);
    if (known !== undefined) return known;
    const page = make();
    const length = this.#length + page.json.length;
    if (length <= this.#maxLength) {
      this.#pages.set(key, page);
      this.#length = length;
    }
    return page;
  }
}
