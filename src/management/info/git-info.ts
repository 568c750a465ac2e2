import type { MaybePromise } from '../../core/maybe-promise.ts';

/** The commit that a program was built from, as Actuator shows it. */
export interface GitInfo {
  /** Absent when no branch is checked out. */
  readonly branch?: string;
  readonly commit: {
    /** The first seven digits. */
    readonly id: string;
    /** When it was committed, in ISO 8601. */
    readonly time?: string;
  };
}

/** The commit, or a function that finds it; undefined when there is none. */
export type GitSource = GitInfo | (() => MaybePromise<GitInfo | undefined>);
