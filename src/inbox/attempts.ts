/** What the receiver of a forwarded delivery answered. */
export interface Answer {
  readonly status: number;
  /** The first kilobyte of its body, as text. */
  readonly body: string;
}

/** What an attempt leaves behind, beside its outcome. */
export interface AttemptTrace {
  /** In milliseconds. */
  readonly duration: number;
  /** Null for a handler, and where no answer came. */
  readonly answer: Answer | null;
  /** Maximum number of entries that the job keeps; the oldest go. */
  readonly kept: number;
}

/** Entries that a job keeps unless its target says otherwise. */
export const KEPT_ATTEMPTS = 20;

/** Maximum size of the kept part of an answer, in bytes. */
export const MAX_ANSWER = 1_024;

/** One attempt of a job that has ended. Times are in milliseconds since the epoch. */
export interface AttemptEntry {
  /** 1 for the first one since the job was added or replayed; what did not count has the number of its next try. */
  readonly attempt: number;
  /** `died`: its process ended, or stood still until its lease had ended. */
  readonly outcome: 'done' | 'retry' | 'dead' | 'released' | 'died';
  readonly startedAt: number;
  /** In milliseconds; null for `died`, which nobody has seen end. */
  readonly duration: number | null;
  /** The process that made it: its host, its number there, and a random part. */
  readonly process: string;
  readonly answer: Answer | null;
  readonly error: string | null;
}
