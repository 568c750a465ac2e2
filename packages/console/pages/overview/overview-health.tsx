import { formatBytes, formatSpan } from '../../data/format.ts';
import type { Data } from '../../data/use-data.ts';
import { Card, Status, type Tone, Waiting } from '../../parts/parts.tsx';

interface HealthPart {
  readonly status: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly components?: Readonly<Record<string, HealthPart>>;
}

export type Health = HealthPart;

function toneOf(status: string): Tone {
  if (status === 'UP') return 'good';
  return status === 'DOWN' ? 'bad' : 'warn';
}

const TITLES: Readonly<Record<string, string>> = {
  db: 'Database',
  writer: 'Writes',
  diskSpace: 'Disk space',
  eventLoop: 'Event loop',
  webhookBacklog: 'Webhook backlog',
};

/** Shown for healthy components without details. */
const WELL: Readonly<Record<string, string>> = { db: 'answers', writer: 'commits' };

/** The health of the service and its dependencies, with failures in words. */
export function HealthCard({ health: { value, error } }: { health: Data<Health> }) {
  if (value === undefined || error !== undefined) {
    return (
      <Card title="Health">
        <Waiting error={error} what="Health" />
      </Card>
    );
  }
  const parts = Object.entries(value.components ?? {});
  const wrong = parts.filter(([, { status }]) => status !== 'UP');
  return (
    <Card title="Health" className="health">
      <p className={`verdict ${toneOf(value.status)}`}>
        <Status tone={toneOf(value.status)}>{value.status}</Status>
        <span>{verdict(parts.length, wrong)}</span>
      </p>
      <ul className="components">
        {parts.map(([name, part]) => (
          <li key={name}>
            <span className="component">{TITLES[name] ?? name}</span>
            <span className="component-text">{describe(part) || WELL[name]}</span>
            <Status tone={toneOf(part.status)}>{part.status}</Status>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function verdict(all: number, wrong: readonly (readonly [string, HealthPart])[]): string {
  if (all === 0) return 'Components are not shown.';
  if (wrong.length === 0) return `All ${all} checks pass.`;
  const names = wrong.map(([name]) => TITLES[name] ?? name).join(', ');
  return `${wrong.length} of ${all} checks ${wrong.length === 1 ? 'fails' : 'fail'}: ${names}.`;
}

/** The details of a component in a few words; an error comes first. */
function describe({ details = {}, components }: HealthPart): string {
  if (components !== undefined) {
    return Object.entries(components)
      .map(([name, { status }]) => `${name} ${status}`)
      .join(', ');
  }
  const { error, free, total, open, oldestMs, dead, p99Ms, delayMs } = details;
  if (typeof error === 'string') return error;
  if (typeof free === 'number' && typeof total === 'number') {
    return `${formatBytes(free)} of ${formatBytes(total)} free`;
  }
  if (typeof open === 'number') {
    const age = typeof oldestMs === 'number' ? `, oldest ${formatSpan(oldestMs)}` : '';
    return `${open} open${age}${dead ? `, ${dead} dead` : ''}`;
  }
  if ('thresholdMs' in details && p99Ms === undefined) return 'not measured yet';
  const late = p99Ms ?? delayMs;
  if (typeof late === 'number') return `p99 delay ${late} ms`;
  return Object.entries(details)
    .map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(', ');
}
