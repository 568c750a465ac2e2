/** How many faults a refusal lists, how many that of a line of an import lists, and how many its message has. */
export const MAX_FAULTS = { listed: 100, ofLine: 10, told: 3 } as const;

/** Maximum size of a row in bytes: that of a body. */
export const MAX_ROW = 1024 * 1024;

/** The fault of a row that has too many bytes. */
export function tooLargeRow(pointer: string): { readonly detail: string; readonly pointer: string } {
  return { detail: `a row has at most ${MAX_ROW.toLocaleString('en-US')} bytes (row)`, pointer };
}

/** The size of the values of a row in bytes. */
export function sizeOfRow(values: readonly unknown[]): number {
  let bytes = 0;
  for (const value of values) {
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else bytes += value instanceof Uint8Array ? value.length : 8;
  }
  return bytes;
}

/** How many more unknown names get a proposal, which costs milliseconds among many long names. */
export interface Proposals {
  left: number;
}

/** A name that a client has made up may be as long as its body. */
const MAX_POINTED = 200;

/** The pointer of a member; `at` is that of its row. */
export function pointerTo(at: string, name: string): string {
  const text = name.length > MAX_POINTED ? `${name.slice(0, MAX_POINTED)}\u{2026}` : name;
  return `${at}/${encodeURIComponent(text.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'))}`;
}
