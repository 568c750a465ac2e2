/** Number of scraped metrics, and of the series of each: as many as a busy service has. */
export const METERS = 10;
export const SERIES_OF_METER = 1_000;
