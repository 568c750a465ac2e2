/** What was checked out where a program was built, as Actuator shows it. */
export interface GitInfo {
  /** Absent when no branch is checked out. */
  readonly branch?: string;
  readonly commit: {
    /** The first seven digits. */
    readonly id: string;
    /** When it was made, in ISO 8601; absent when the commit itself cannot be read. */
    readonly time?: string;
  };
}
