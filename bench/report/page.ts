import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from '../machine/machine.ts';
import type { Finding, Plot, Target, Unit } from '../row.ts';
import type { RowOutcome } from '../run-row.ts';
import { drawBars } from './bars.ts';
import { drawLines } from './lines.ts';
import { amount, findingLine, isReached, tableLines } from './markdown.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const PAGE = join(DOCS, 'PERFORMANCE.md');
const FOLDER = join(DOCS, 'performance');
const REPORT = 'performance/report.md';
const BEGIN = '<!-- bench: begin (written by npm run bench -- --write) -->';
const END = '<!-- bench: end -->';

/** The conditions of a run. */
export interface Conditions {
  readonly machine: Machine;
  readonly versions: readonly string[];
  readonly tool: string;
  /** The SQLite driver of the peers, with the reason if it is not better-sqlite3. */
  readonly sqlite: string;
  readonly pace: string;
  readonly date: string;
}

/**
 * Writes the report of a whole run with its plots to docs/performance, and its summary to
 * docs/PERFORMANCE.md.
 */
export function writePage(outcomes: readonly RowOutcome[], conditions: Conditions): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const outcome of outcomes) {
    if (!('result' in outcome)) continue;
    for (const plot of outcome.result.plots) writeFileSync(join(FOLDER, `${plot.file}.svg`), draw(plot));
  }
  writeFileSync(join(DOCS, REPORT), report(outcomes, conditions));
  const measured = outcomes.map((outcome) => ({
    title: outcome.row.title,
    findings: 'result' in outcome ? outcome.result.findings : undefined,
  }));
  const summary = `${conditionLine(conditions)}\n\n${summaryOf(measured)}`;
  writeFileSync(PAGE, withSection(readFileSync(PAGE, 'utf8'), summary));
}

/** Replaces the text between the marks of a page. Throws if the page has no marks. */
export function withSection(page: string, text: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`docs/PERFORMANCE.md needs the lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${text}\n\n${page.slice(end)}`;
}

function draw(plot: Plot): string {
  return plot.kind === 'bars' ? drawBars(plot) : drawLines(plot);
}

/** A row of the summary; without findings the row failed. */
export interface Measured {
  readonly title: string;
  readonly findings: readonly Finding[] | undefined;
}

/** The ratios to peers in one table, and the missed targets in another. */
export function summaryOf(rows: readonly Measured[]): string {
  const missed = rows.flatMap(({ title, findings }) =>
    (findings ?? []).flatMap((finding) => missedLines(title, finding)),
  );
  return [
    ...['### Ratios', ''],
    '| Path | Portico / peer | p99 / best peer | paced p99 / best peer |',
    '| --- | --- | --- | --- |',
    ...rows.map(ratioLine).filter((line) => line !== undefined),
    ...['', '### Missed targets', ''],
    '| Path | What | Measured | Rounds | Target |',
    '| --- | --- | --- | --- | --- |',
    ...missed,
  ].join('\n');
}

/** Excludes ratios between two variants of Portico. */
const WITH_A_PEER = /\bPortico\b.* \/ /;
const PACED = /\bpaced p99 of .* best peer/;
const TAIL = /\bp99 of .* best peer/;

function ratioLine({ title, findings }: Measured): string | undefined {
  const link = `[${title}](${REPORT}#${anchorOf(title)})`;
  if (findings === undefined) return `| ${link} | the row failed | | |`;
  const ratios = findings.filter(({ unit }) => unit === 'x');
  const valuesOf = (chosen: readonly Finding[]) => chosen.map(({ value }) => amount(value, 'x')).join(', ');
  const paced = ratios.filter(({ what }) => PACED.test(what));
  const tails = ratios.filter(({ what }) => TAIL.test(what) && !PACED.test(what));
  const rest = ratios.filter(({ what }) => WITH_A_PEER.test(what) && !TAIL.test(what));
  if (rest.length === 0) return undefined;
  const peers = rest.map(
    ({ what, value }) => `${what.replace(/(^|: )Portico \/ /, '$1')} ${amount(value, 'x')}`,
  );
  return `| ${link} | ${peers.join('; ')} | ${valuesOf(tails)} | ${valuesOf(paced)} |`;
}

function missedLines(title: string, { what, value, unit, spread, target }: Finding): readonly string[] {
  if (target === undefined || isReached(value, target)) return [];
  const rounds = spread === undefined ? '' : spread.map((end) => amount(end, unit)).join('-');
  return [`| ${title} | ${what} | ${amount(value, unit)} | ${rounds} | ${limitOf(target, unit)} |`];
}

/** GitHub's anchor of a heading. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

function limitOf(target: Target, unit: Unit): string {
  return 'atLeast' in target ? `>= ${amount(target.atLeast, unit)}` : `<= ${amount(target.atMost, unit)}`;
}

function report(outcomes: readonly RowOutcome[], conditions: Conditions): string {
  const about =
    'Written by `npm run bench -- --write`; [PERFORMANCE.md](../PERFORMANCE.md) says how to read it.';
  const versions = `Versions: ${conditions.versions.join(', ')}.`;
  const head = ['# Benchmark report', about, conditionLine(conditions), versions, goals(outcomes)];
  return `${[...head, ...outcomes.map(rowSection)].join('\n\n')}\n`;
}

function conditionLine({ machine, tool, sqlite, pace, date }: Conditions): string {
  const { cpu, cores, memory, system, sync } = machine;
  return `${date}. ${cpu}, ${cores} cores, ${memory.toFixed(0)} GB of memory, ${system}. A write of 4 KiB and its sync take ${sync.toFixed(2)} ms on its disk. ${pace} Load: ${tool}. SQLite in the peers: ${sqlite}.`;
}

/** All targets in one table. */
function goals(outcomes: readonly RowOutcome[]): string {
  const lines = outcomes.flatMap((outcome) =>
    'result' in outcome
      ? outcome.result.findings.flatMap((finding) => goalLines(outcome.row.title, finding))
      : [[outcome.row.title, 'the row failed', '', '', 'no']],
  );
  return tableLines({ head: ['path', 'what', 'measured', 'target', 'reached'], lines }).join('\n');
}

function goalLines(title: string, { what, value, unit, target }: Finding): readonly (readonly string[])[] {
  if (target === undefined) return [];
  const reached = isReached(value, target) ? 'yes' : 'no';
  return [[title, what, amount(value, unit), limitOf(target, unit), reached]];
}

function rowSection(outcome: RowOutcome): string {
  const { row } = outcome;
  const head = `## ${row.title}\n\n${row.about} (\`--only ${row.name}\`)`;
  if ('error' in outcome) return `${head}\n\n**This row failed:** ${outcome.error.split('\n', 1)[0]}`;
  const { tables, findings, plots, notes } = outcome.result;
  return [
    head,
    ...plots.map(({ file, title }) => `![${title}](${file}.svg)`),
    ...tables.map((table) => tableLines(table).join('\n')),
    findings.map(findingLine).join('\n'),
    ...notes,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}
