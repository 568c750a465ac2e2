const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** A number with at most three significant digits, or all digits of an integer. */
export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (Math.abs(value) >= 100) return WHOLE.format(value);
  return NUMBER.format(Math.abs(value) >= 10 ? Math.round(value * 10) / 10 : value);
}

const BYTES = ['B', 'kB', 'MB', 'GB', 'TB'];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < BYTES.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${formatNumber(value)} ${BYTES[unit]}`;
}

/** A duration in milliseconds, in a fitting unit. */
export function formatMs(ms: number): string {
  if (ms < 1) return `${formatNumber(Math.round(ms * 1_000))} µs`;
  if (ms < 1_000) return `${formatNumber(ms)} ms`;
  if (ms < 60_000) return `${formatNumber(Math.round(ms / 10) / 100)} s`;
  return formatSpan(ms);
}

/** A duration in its two largest units. `ms` is in milliseconds. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} min`;
  if (m > 0) return `${m} min ${s} s`;
  return `${s} s`;
}

/** The value of a plot in its unit. */
export function formatValue(value: number, unit: string): string {
  switch (unit) {
    case 'bytes':
      return formatBytes(value);
    case 'ms':
      return value === 0 ? '0 ms' : formatMs(value);
    case 's':
    case 'seconds':
      return value < 60 ? `${formatNumber(value)} s` : formatSpan(value * 1_000);
    case 'share':
      return `${formatNumber(value * 100)} %`;
    case '1/s':
      return `${formatNumber(value)}/s`;
    case 'cores':
      return `${formatNumber(value)}`;
    default:
      return unit === '' ? formatNumber(value) : `${formatNumber(value)} ${unit}`;
  }
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' });

export function formatTime(at: string | number): string {
  return CLOCK.format(new Date(at));
}

/** A time, with the date unless it is today. */
export function formatMoment(at: string | number): string {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString()
    ? CLOCK.format(date)
    : `${DAY.format(date)}, ${CLOCK.format(date)}`;
}

/** An error without the name of its class, which says nothing to customers and operators. */
export const shortError = (error: string) => error.replace(/^[A-Za-z]*Error: /, '');
