import { GenerationalCache } from '../core/generational-cache.ts';
import type { SendingStore, StoredEndpoint } from './store.ts';

/** An endpoint with its sender, as of a moment. */
interface Entry<T> {
  endpoint: StoredEndpoint;
  readonly made: T;
  /** On the monotonic clock. */
  readAt: number;
}

/** So old an entry may be, in milliseconds: other processes may have changed the endpoint since. */
const FRESH = 500;
/** Size of the entries that are kept, in bytes. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Estimated size of an entry besides its settings, in bytes. */
const OVERHEAD = 2_500;

/**
 * The endpoints that attempts need, at most half a second old. Those asked for in one turn of the event loop are read
 * together.
 */
export class EndpointBook<T> {
  readonly #store: Pick<SendingStore, 'endpointsOf'>;
  readonly #make: (endpoint: StoredEndpoint) => T;
  readonly #entries = new GenerationalCache<Entry<T>>(MAX_BYTES);
  #wanted: Map<string, PromiseWithResolvers<Entry<T> | undefined>> | undefined;

  /** `make` is called once per version of an endpoint that is kept. */
  constructor(store: Pick<SendingStore, 'endpointsOf'>, make: (endpoint: StoredEndpoint) => T) {
    this.#store = store;
    this.#make = make;
  }

  /** The kept entry of an endpoint, however old. */
  peek(id: string): Entry<T> | undefined {
    return this.#entries.get(id);
  }

  /** An endpoint; undefined if it does not exist. Rejects as the store does. */
  get(id: string): Entry<T> | Promise<Entry<T> | undefined> {
    const known = this.#entries.get(id);
    if (known !== undefined && performance.now() - known.readAt < FRESH) return known;
    if (this.#wanted === undefined) {
      this.#wanted = new Map();
      setImmediate(() => void this.#read());
    }
    const wanted = this.#wanted.get(id) ?? Promise.withResolvers<Entry<T> | undefined>();
    this.#wanted.set(id, wanted);
    return wanted.promise;
  }

  /** Has an endpoint read anew that this process has changed; its sender stays if its settings are the same. */
  forget(id: string): void {
    const known = this.#entries.get(id);
    if (known !== undefined) known.readAt = Number.NEGATIVE_INFINITY;
  }

  async #read(): Promise<void> {
    const wanted = this.#wanted ?? new Map<string, PromiseWithResolvers<Entry<T> | undefined>>();
    this.#wanted = undefined;
    const readAt = performance.now();
    try {
      const found = await this.#store.endpointsOf([...wanted.keys()]);
      const byId = new Map(found.map((endpoint) => [endpoint.id, endpoint]));
      for (const [id, { resolve }] of wanted) resolve(this.#keep(id, byId.get(id), readAt));
    } catch (error) {
      for (const { reject } of wanted.values()) reject(error);
    }
  }

  #keep(id: string, endpoint: StoredEndpoint | undefined, readAt: number): Entry<T> | undefined {
    const known = this.#entries.get(id);
    if (endpoint !== undefined && known?.endpoint.updatedAt === endpoint.updatedAt) {
      known.readAt = readAt;
      // That the endpoint fails, or works again, does not change its version. Otherwise the object stays: each one that
      // is replaced after it has become old is work for the garbage collector.
      if (known.endpoint.failingSince !== endpoint.failingSince) known.endpoint = endpoint;
      return known;
    }
    this.#entries.delete(id);
    if (endpoint === undefined) return undefined;
    const entry = { endpoint, made: this.#make(endpoint), readAt };
    this.#entries.set(id, entry, 2 * JSON.stringify(endpoint.settings).length + OVERHEAD);
    return entry;
  }
}
