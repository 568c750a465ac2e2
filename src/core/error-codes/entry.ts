/** Error codes and what each means. */
export type ErrorEntries = Readonly<Record<string, ErrorEntry>>;

interface ErrorEntry {
  /** The usual HTTP status of a refusal with the code. */
  readonly status?: number;
  /** What the code means and what to do; the title of problem details. */
  readonly text: string;
}
