import { grouped } from '../measure/figures.ts';
import { median } from '../measure/statistics.ts';
import { tableLines } from '../report/markdown.ts';
import type { Outcome } from './outcome.ts';
import { drawTime } from './plot.ts';
import type { Group } from './recorder.ts';
import { byProcess, inParts, memoryTrend, type Sample } from './samples.ts';
import type { Point } from './slope.ts';

const PARTS = 6;
/** Time that a heap takes to reach its size, in seconds. */
const ENOUGH = 1_800;
const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
const highest = (values: readonly number[]) => Math.max(...values.filter(Number.isFinite));

/** The files of the report by name: Markdown and plots. */
export function writeReport(outcome: Outcome): Readonly<Record<string, string>> {
  const { engine } = outcome;
  const plots = plotsOf(outcome);
  return {
    [`${engine}.md`]: markdown(outcome),
    ...Object.fromEntries(Object.entries(plots).map(([name, svg]) => [`${engine}-${name}.svg`, svg])),
  };
}

function markdown(outcome: Outcome): string {
  const { engine, samples, seconds, audit, ends } = outcome;
  const trend = memoryTrend(samples);
  const lost = audit.problems.length === 0 ? 'none' : audit.problems.map((each) => `\n  - ${each}`).join('');
  const growth =
    trend === undefined
      ? 'too short to tell'
      : `${trend.perHourMiB.toFixed(1)} MiB an hour: from ${grouped(trend.firstMiB)} to ${grouped(trend.lastMiB)} MiB in ${grouped(trend.seconds / 60)} minutes of the process that lived longest (${trend.process}), without the first fifth of its life`;
  const caution =
    trend !== undefined && trend.seconds < ENOUGH ? ' (which says little after so short a time)' : '';
  const opened = samples.flatMap(({ usages }) => usages.map(({ descriptors }) => descriptors));
  const lines = [
    `# Soak test on ${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`,
    '',
    `${outcome.date}, ${grouped(seconds / 60)} minutes: \`${outcome.command}\`. ${outcome.machine}`,
    '',
    `- **Acknowledged and lost, or not handled: ${lost}**. Compared: ${audit.users.toLocaleString('en-US')} users and ${audit.deliveries.toLocaleString('en-US')} deliveries; ${audit.handledAgain} deliveries were handled more than once.`,
    `- Requests: ${sum(outcome.counts.values()).toLocaleString('en-US')} succeeded, ${sum(outcome.errors.values()).toLocaleString('en-US')} failed.`,
    `- Memory: ${growth}${caution}.`,
    `- File descriptors of a process: ${Math.min(...opened)} to ${Math.max(...opened)}, at the end ${(samples.at(-1)?.usages ?? []).map(({ descriptors }) => descriptors).join(' and ')}.`,
    `- Processes that ended though nobody asked them to: ${ends.length === 0 ? 'none' : ends.join('; ')}.`,
    '',
    ...['memory', 'latency', 'descriptors', 'requests'].map((name) => `![${name}](${engine}-${name}.svg)\n`),
    '## Latency over time',
    '',
    'Milliseconds: the median of the p50 of all samples, and the highest p99 of a sample, faults included.',
    '',
    ...tableLines(latencies(outcome)),
    '',
    '## Faults',
    '',
    'Each is a thin line in the plots. Milliseconds from its beginning, and so with the time that it lasts, until a write was acknowledged.',
    '',
    ...tableLines(faultTable(outcome)),
    '',
    '## Requests',
    '',
    ...tableLines({ head: ['Succeeded', 'requests'], lines: counted(outcome.counts) }),
    '',
    ...tableLines({ head: ['Failed', 'requests'], lines: counted(outcome.errors) }),
    '',
  ];
  return lines.join('\n');
}

function latencies({ samples }: Outcome) {
  const groups: readonly Group[] = ['writes', 'reads', 'management'];
  const middle = (part: readonly Sample[], group: Group) =>
    median(part.map(({ p50 }) => p50[group]).filter(Number.isFinite));
  const worst = (part: readonly Sample[], group: Group) => highest(part.map(({ p99 }) => p99[group]));
  const head = ['Minutes', ...groups.flatMap((group) => [`${group} p50`, `p99`])];
  const lines = inParts(samples, PARTS)
    .filter((part) => part.length > 0)
    .map((part) => [
      [part[0], part.at(-1)].map((sample) => ((sample?.at ?? 0) / 60).toFixed(1)).join('-'),
      ...groups.flatMap((group) => [middle(part, group), worst(part, group)].map(shown)),
    ]);
  return { head, lines };
}

function faultTable({ faults }: Outcome) {
  const lines = [...Map.groupBy(faults, ({ name }) => name)].map(([name, records]) => {
    const times = records.map(({ recoveredMs }) => recoveredMs).filter(Number.isFinite);
    return [name, String(records.length), shown(median(times)), shown(highest(times))];
  });
  return { head: ['Fault', 'times', 'recovered, median', 'longest'], lines };
}

function counted(counts: ReadonlyMap<string, number>): readonly (readonly string[])[] {
  return [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, count]) => [kind, count.toLocaleString('en-US')]);
}

function shown(value: number): string {
  return Number.isFinite(value) ? grouped(value) : '';
}

function plotsOf({ samples, faults }: Outcome): Readonly<Record<string, string>> {
  const marks = faults.map(({ at }) => at);
  const points = (value: (sample: Sample) => number): readonly Point[] =>
    samples.map((sample) => ({ at: sample.at, value: value(sample) }));
  const perSecond = (value: (sample: Sample) => number) =>
    points((sample) => {
      const before = samples[samples.indexOf(sample) - 1]?.at ?? 0;
      return value(sample) / (sample.at - before);
    });
  const ofProcesses = (value: (usage: Sample['usages'][number]) => number) =>
    Array.from(byProcess(samples, value), ([label, line]) => ({ label, points: line }));
  /** The longest-lived process by its name, and the others. */
  const longest = memoryTrend(samples)?.process;
  const named = (lines: ReturnType<typeof ofProcesses>) =>
    lines.map((line) => (line.label === longest ? line : { ...line, label: '' }));
  return {
    memory: drawTime({
      title: 'Resident memory by process',
      unit: 'MiB',
      scale: 'linear',
      marks,
      lines: named(ofProcesses(({ memoryMiB }) => memoryMiB)),
    }),
    descriptors: drawTime({
      title: 'Open file descriptors by process',
      unit: 'number',
      scale: 'linear',
      marks,
      lines: named(ofProcesses(({ descriptors }) => descriptors)),
    }),
    latency: drawTime({
      title: 'Latency of requests that succeeded',
      unit: 'ms, logarithmic',
      scale: 'logarithmic',
      marks,
      lines: [
        { label: 'writes p50', points: points(({ p50 }) => p50.writes) },
        { label: 'writes p99', points: points(({ p99 }) => p99.writes) },
        { label: 'reads p50', points: points(({ p50 }) => p50.reads) },
        { label: 'reads p99', points: points(({ p99 }) => p99.reads) },
      ],
    }),
    requests: drawTime({
      title: 'Requests',
      unit: 'per second',
      scale: 'linear',
      marks,
      lines: [
        { label: 'all', points: perSecond(({ requests }) => requests) },
        { label: 'failed', points: perSecond(({ errors }) => errors) },
      ],
    }),
  };
}
