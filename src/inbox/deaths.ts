// A death: the process of a running attempt ended, or stood still until its lease had ended. It is no attempt.

/** A job with so many deaths is a suspect: a process runs one suspect at a time, so that only the culprit dies on. */
export const SUSPECT_DEATHS = 2;
/** A job is dead after so many deaths. */
export const MAX_DEATHS = 5;
