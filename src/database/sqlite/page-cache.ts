import type { UserPage } from '../../users/user-store.ts';

/** What all pages together may hold, in characters: short lists; a long one would make the heap grow by several times its length. */
const MAX_LENGTH = 2 * 1024 * 1024;

/** Pages of one version of the database; those of an older one are forgotten. What does not fit is not kept. */
export class PageCache {
  readonly #maxLength: number;
  #pages = new Map<string, UserPage>();
  #version: number | undefined;
  #length = 0;

  constructor(maxLength = MAX_LENGTH) {
    this.#maxLength = maxLength;
  }

  /** The page that was made for `key` at this version, or a new one. */
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
