import type { Random } from '../../support/random.ts';

/** A part of a file that was written but that nothing has made durable. */
interface Change {
  readonly offset: number;
  /** Bytes, or the size to which the file was cut. */
  readonly data: Buffer | 'truncate';
  returned: boolean;
  /** A sync of it failed: the system takes it for clean and writes it no more by itself. */
  forgotten: boolean;
  /** Pages of a forgotten change that became durable later, together with what else was written in them. */
  readonly kept: Set<number>;
}

/** How much of an unsynced file a power cut leaves: for a sector, how many of the changes reached it. */
export type Survival = (sector: number) => number;

/** In which order and in what pieces a disk got to what was not synced. */
export interface CrashStyle {
  /** What is written whole or not at all, in bytes. */
  readonly sector: number;
  survival(changes: number, random: Random): Survival;
}

const PAGE = 4096;

/** A file as the disk has it, and what the system still holds back. */
export class FileImage {
  #durable = Buffer.alloc(0);
  #changes: Change[] = [];

  begin(offset: number, data: Buffer | 'truncate'): { returned: boolean } {
    const change = { offset, data, returned: false, forgotten: false, kept: new Set<number>() };
    this.#changes.push(change);
    return change;
  }

  /** A sync begins; the function that is returned ends it. It covers the writes that had returned before. */
  beginSync(): (failed: boolean) => void {
    const covered = new Set(this.#changes.filter(({ returned, forgotten }) => returned && !forgotten));
    return (failed) => {
      if (failed) for (const change of covered) change.forgotten = true;
      else this.#settle(covered);
    };
  }

  #settle(covered: ReadonlySet<Change>): void {
    const pages = new Set([...covered].flatMap((change) => [...sectorsOf(change, PAGE)]));
    for (const change of this.#changes) {
      // Sizes are kept apart from bytes: a sync writes the one that the file has.
      if (covered.has(change) || isForgottenCut(change)) {
        this.#durable = apply(this.#durable, change, PAGE, () => true);
      } else if (change.forgotten) {
        // The page that is written goes to the disk as the system has it.
        this.#durable = apply(
          this.#durable,
          change,
          PAGE,
          (page) => pages.has(page) && !change.kept.has(page),
        );
        for (const page of sectorsOf(change, PAGE)) if (pages.has(page)) change.kept.add(page);
      }
    }
    this.#changes = this.#changes.filter((change) => !covered.has(change) && !isForgottenCut(change));
  }

  /** The file as it may be found after a power cut now. */
  crash({ sector, survival }: CrashStyle, random: Random): Buffer {
    const reached = survival(this.#changes.length, random);
    let image = Buffer.alloc(this.#durable.length);
    this.#durable.copy(image);
    for (const [i, change] of this.#changes.entries()) {
      image = apply(image, change, sector, (at) => {
        const page = Math.floor((at * sector) / PAGE);
        return i < reached(at) && !change.kept.has(page);
      });
    }
    return image;
  }
}

function isForgottenCut({ data, forgotten }: Change): boolean {
  return data === 'truncate' && forgotten;
}

function* sectorsOf({ offset, data }: Change, sector: number): Generator<number> {
  if (data === 'truncate') return;
  const last = Math.floor((offset + data.length - 1) / sector);
  for (let at = Math.floor(offset / sector); at <= last; at++) yield at;
}

/** The image with those sectors of a change that `reached` allows; it is changed in place where it is long enough. */
function apply(
  image: Buffer<ArrayBuffer>,
  change: Change,
  sector: number,
  reached: (sector: number) => boolean,
): Buffer<ArrayBuffer> {
  const { offset, data } = change;
  if (data === 'truncate') {
    if (offset <= image.length)
      return reached(Math.floor(offset / sector)) ? image.subarray(0, offset) : image;
    return image;
  }
  let result = image;
  for (const at of sectorsOf(change, sector)) {
    if (!reached(at)) continue;
    const from = Math.max(offset, at * sector);
    const to = Math.min(offset + data.length, (at + 1) * sector);
    if (to > result.length) result = grow(result, to);
    data.copy(result, from, from - offset, to - offset);
  }
  return result;
}

/** What was never written between two parts of a file reads as zeros. */
function grow(image: Buffer<ArrayBuffer>, size: number): Buffer<ArrayBuffer> {
  const room = image.buffer.byteLength - image.byteOffset;
  if (size <= room) {
    const grown = Buffer.from(image.buffer, image.byteOffset, size);
    grown.fill(0, image.length);
    return grown;
  }
  const grown = Buffer.alloc(Math.max(size, 2 * image.length, 64 * 1024)).subarray(0, size);
  image.copy(grown);
  return grown;
}
