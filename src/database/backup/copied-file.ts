/** What a copy is made of, and where it goes. */
export interface CopyJob {
  readonly from: string;
  /** Overwritten when it exists. */
  readonly to: string;
  /** Whether a service may be writing to `from`: then the copy takes at most half of the disk's time. */
  readonly live: boolean;
}

/** A finished copy, whose integrity and number of rows were checked. */
export interface CopiedFile {
  readonly bytes: number;
  /** By table. */
  readonly rows: Readonly<Record<string, number>>;
}

/** Called with the pages that are copied, of how many; then with the tables that are checked. */
export type OnCopy = (step: 'copy' | 'check', done: number, total: number) => void;
