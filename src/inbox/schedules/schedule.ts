/** The planned times of a schedule, in milliseconds since the epoch. */
export interface Timetable {
  /** The last planned time up to `now`; undefined when there is none. */
  last(now: number): number | undefined;
  /** The first planned time after `now`; undefined when there is none. */
  next(now: number): number | undefined;
}

/** A delivery that is stored again and again. */
export interface Schedule {
  readonly name: string;
  readonly event: string;
  /** What its handler gets, beside the name of the schedule and the planned time. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly timetable: Timetable;
  /** Identifies the timetable: another one begins anew. */
  readonly plan: string;
  /** A missed delivery is stored up to so late, in milliseconds. */
  readonly grace: number;
}
