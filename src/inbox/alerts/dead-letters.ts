/** The jobs of a target that have died since the last alert about it. */
export interface DeadLetters {
  readonly target: string;
  /** How many, at most `MAX_COUNTED`. */
  readonly count: number;
  /** Where the mark of its alerts is; 0 before the first one. */
  readonly since: number;
}

/** No more dead jobs of a target are counted. */
export const MAX_COUNTED = 100_000;

/** The targets of alerts begin with this; there are no alerts about them. */
export const ALERT_PREFIX = 'alert:';

/** The name of the mark of the alerts about a target begins with this. */
export const ALERT_MARK = 'alert:dead:';
