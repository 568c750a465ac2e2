import { entryReader, type ImportFormat } from './formats.ts';
import type { TakeEntry } from './import-entry.ts';
import { ImportError } from './import-error.ts';
import { LineDecoder } from './text-decoder.ts';

/** Turns the bytes of an import into its lines, within a limit. */
export class EntrySource {
  readonly #decoder = new LineDecoder();
  readonly #reader;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(format: ImportFormat, maxBytes: number) {
    this.#reader = entryReader(format);
    this.#maxBytes = maxBytes;
  }

  /** Throws ImportError for what makes all that follows unreadable. */
  push(chunk: Uint8Array, take: TakeEntry): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      throw new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${this.#maxBytes} bytes`);
    }
    this.#reader.push(this.#decoder.decode(chunk), take);
  }

  /** Throws ImportError. */
  end(take: TakeEntry): void {
    this.#reader.push(this.#decoder.end(), take);
    this.#reader.end(take);
  }
}
