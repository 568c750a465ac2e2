import { GrowingBuffer } from '../../http/body/growing-buffer.ts';
import { entryReader, type ImportFormat } from './formats.ts';
import type { TakeEntry } from './import-entry.ts';
import { ImportError } from './import-error.ts';
import { LineDecoder } from './text-decoder.ts';

/** Bytes that are gathered where none of them ends anything, so that a sender of single bytes costs little. */
const GATHERED = 16 * 1024;
/** What may end an entry of each format. */
const ENDS: Readonly<Record<ImportFormat, readonly string[]>> = {
  ndjson: ['\n'],
  csv: ['\n'],
  array: [',', ']'],
};

/** Turns the bytes of an import into its lines, within a limit. */
export class EntrySource {
  readonly #decoder = new LineDecoder();
  readonly #reader;
  readonly #ends: readonly string[];
  readonly #maxBytes: number;
  readonly #gathered = new GrowingBuffer();
  #bytes = 0;

  constructor(format: ImportFormat, maxBytes: number) {
    this.#ends = ENDS[format];
    this.#reader = entryReader(format);
    this.#maxBytes = maxBytes;
  }

  /** Throws ImportError for what makes all that follows unreadable. */
  push(chunk: Uint8Array, take: TakeEntry): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      throw new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${this.#maxBytes} bytes`);
    }
    if (this.#gathered.length + chunk.length < GATHERED && !this.#mayEnd(chunk)) {
      this.#gathered.append(chunk);
      return;
    }
    this.#reader.push(this.#decoder.decode(this.#withGathered(chunk)), take);
  }

  /** Throws ImportError. */
  end(take: TakeEntry): void {
    this.#reader.push(this.#decoder.decode(this.#gathered.take()) + this.#decoder.end(), take);
    this.#reader.end(take);
  }

  #withGathered(chunk: Uint8Array): Uint8Array {
    if (this.#gathered.length === 0) return chunk;
    this.#gathered.append(chunk);
    return this.#gathered.take();
  }

  #mayEnd(chunk: Uint8Array): boolean {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    return this.#ends.some((end) => bytes.includes(end));
  }
}
