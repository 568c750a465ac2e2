/** Number of scraped metrics and of the series of each, as in a busy service. */
export const METERS = 10;
export const SERIES_OF_METER = 1_000;
