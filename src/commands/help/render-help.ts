import { type Paint, plainly } from '../../core/paint.ts';

/** One thing that help explains. */
export interface HelpLine {
  /** The command, or the option with its value. */
  readonly head: string;
  /** The environment variable of an option. */
  readonly variable?: string;
  /** Empty: the head stands alone, and is never broken. */
  readonly text: string;
}

/** A part of a help page. */
export interface HelpSection {
  readonly title: string;
  readonly about?: string;
  readonly lines?: readonly HelpLine[];
}

/** Columns for the head of a line with a variable: the longest variable still fits 72 columns behind it. */
const HEAD = 32;

/** A help page for a terminal of so many columns; between 72 and 100 of them are used, 80 when that is not known. */
export function renderHelp(sections: readonly HelpSection[], width: number, paint: Paint = plainly): string {
  const columns = Math.min(100, Math.max(72, Math.floor(width) || 80));
  return `${sections.map((section) => renderSection(section, columns, paint).join('\n')).join('\n\n')}\n`;
}

function renderSection(
  { title, about, lines = [] }: HelpSection,
  columns: number,
  paint: Paint,
): readonly string[] {
  const heads = lines.filter(({ text }) => text !== '').map(({ head }) => head.length);
  const width = Math.max(0, ...heads);
  return [
    paint('bold', title),
    ...(about === undefined ? [] : hang('  ', about, columns)),
    ...lines.flatMap((line) => renderLine(line, width, columns)),
  ];
}

/** The text follows the head on its line, or on the next one when there is a variable. */
function renderLine({ head, variable, text }: HelpLine, width: number, columns: number): readonly string[] {
  if (text === '') return [`  ${head}`];
  if (variable === undefined) return hang(`  ${head.padEnd(width)}  `, text, columns);
  const gap = ' '.repeat(HEAD + 4);
  const top = head.length <= HEAD ? [`  ${head.padEnd(HEAD)}  ${variable}`] : [`  ${head}`, gap + variable];
  return [...top, ...hang('      ', text, columns)];
}

/** Breaks a text at spaces; the lines after the first are indented as far as `lead` is long. */
function hang(lead: string, text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = lead;
  for (const word of text.split(' ')) {
    const joined = line.length === lead.length ? `${line}${word}` : `${line} ${word}`;
    if (joined.length <= columns || line.length === lead.length) {
      line = joined;
    } else {
      lines.push(line);
      line = `${' '.repeat(lead.length)}${word}`;
    }
  }
  return [...lines, line];
}
