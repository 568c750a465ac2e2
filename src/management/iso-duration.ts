const DECIMALS = 6;

/**
 * Formats a duration of at least 0 ms as Actuator does, in ISO 8601: `PT1H2M3.004S`. Seconds are rounded to 6 decimals.
 */
export function formatDuration(durationMs: number): string {
  const unit = 10 ** DECIMALS;
  const total = Math.round((durationMs / 1_000) * unit);
  const hours = Math.floor(total / (3_600 * unit));
  const minutes = Math.floor((total % (3_600 * unit)) / (60 * unit));
  const seconds = ((total % (60 * unit)) / unit).toFixed(DECIMALS).replace(/\.?0+$/, '');
  const text = `${hours > 0 ? `${hours}H` : ''}${minutes > 0 ? `${minutes}M` : ''}${seconds === '0' ? '' : `${seconds}S`}`;
  return `PT${text === '' ? '0S' : text}`;
}

const DURATION = /^P(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$/i;

/** Parses an ISO 8601 duration of days and smaller units, like `PT10M`, to milliseconds; undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  const [, ...parts] = DURATION.exec(text) ?? [];
  if (parts.every((part) => part === undefined)) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0));
  return Math.round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000);
}
