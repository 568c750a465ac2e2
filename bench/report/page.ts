import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from '../machine/machine.ts';
import type { Finding, Plot } from '../row.ts';
import type { RowOutcome } from '../run-row.ts';
import { drawBars } from './bars.ts';
import { drawLines } from './lines.ts';
import { amount, findingLine, isReached, tableLines } from './markdown.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const PAGE = join(DOCS, 'PERFORMANCE.md');
const PLOTS = 'performance';
const BEGIN = '<!-- bench: begin (written by npm run bench -- --write) -->';
const END = '<!-- bench: end -->';

/** The conditions of a run. */
export interface Conditions {
  readonly machine: Machine;
  readonly versions: readonly string[];
  readonly tool: string;
  /** The SQLite driver of the peers, with the reason when it is not better-sqlite3. */
  readonly sqlite: string;
  readonly pace: string;
  readonly date: string;
}

/** Writes the report of a run between the marks in docs/PERFORMANCE.md, and its plots beside it. */
export function writePage(outcomes: readonly RowOutcome[], conditions: Conditions): void {
  const folder = join(DOCS, PLOTS);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const outcome of outcomes) {
    if (!('result' in outcome)) continue;
    for (const plot of outcome.result.plots) writeFileSync(join(folder, `${plot.file}.svg`), draw(plot));
  }
  writeFileSync(PAGE, withSection(readFileSync(PAGE, 'utf8'), section(outcomes, conditions)));
}

/** The page with another text between the marks. Throws when the page has no marks. */
export function withSection(page: string, text: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`docs/PERFORMANCE.md needs the lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${text}\n\n${page.slice(end)}`;
}

function draw(plot: Plot): string {
  return plot.kind === 'bars' ? drawBars(plot) : drawLines(plot);
}

function section(outcomes: readonly RowOutcome[], conditions: Conditions): string {
  return [conditionLines(conditions), goals(outcomes), ...outcomes.map(rowSection)].join('\n\n');
}

function conditionLines({ machine, versions, tool, sqlite, pace, date }: Conditions): string {
  const { cpu, cores, memory, system, sync } = machine;
  return `${date}. ${cpu}, ${cores} cores, ${memory.toFixed(0)} GB of memory, ${system}. A write of 4 KiB and its sync take ${sync.toFixed(2)} ms on its disk. ${pace} Load: ${tool}. SQLite in the peers: ${sqlite}.

Versions: ${versions.join(', ')}.`;
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
  const wish =
    'atLeast' in target ? `>= ${amount(target.atLeast, unit)}` : `<= ${amount(target.atMost, unit)}`;
  return [[title, what, amount(value, unit), wish, isReached(value, target) ? 'yes' : 'no']];
}

function rowSection(outcome: RowOutcome): string {
  const { row } = outcome;
  const head = `### ${row.title}\n\n${row.about} (\`--only ${row.name}\`)`;
  if ('error' in outcome) return `${head}\n\n**This row failed:** ${outcome.error.split('\n', 1)[0]}`;
  const { tables, findings, plots, notes } = outcome.result;
  return [
    head,
    ...plots.map(({ file, title }) => `![${title}](${PLOTS}/${file}.svg)`),
    ...tables.map((table) => tableLines(table).join('\n')),
    findings.map(findingLine).join('\n'),
    ...notes,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}
