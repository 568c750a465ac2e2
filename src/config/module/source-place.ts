import { readFileSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { displayPath } from './module-file.ts';

/** A place in a source file. Line and column count from 1. */
export interface SourcePlace {
  readonly path: string;
  readonly line: number;
  readonly column: number | undefined;
}

/** `portico.config.ts:3:7`, relative to the working directory if inside. */
export function formatPlace(place: SourcePlace, cwd: string): string {
  const column = place.column === undefined ? '' : `:${place.column}`;
  const seen = displayPath(place.path, cwd);
  // Stacks have real paths; the working directory may be a symbolic link.
  const path = seen === place.path ? displayPath(place.path, realpathSync(cwd)) : seen;
  return `${path}:${place.line}${column}`;
}

/** The topmost frame above `until` that is neither Node's nor a package's; a package's frame if there is no other. */
export function placeInStack(stack: string, until: string): SourcePlace | undefined {
  let inPackage: SourcePlace | undefined;
  for (const row of stack.split('\n')) {
    const frame = /^\s+at (?:.*\()?(?:async )?(file:\/\/[^\s)]+|\/.*|[A-Za-z]:\\.*?):(\d+):(\d+)\)?$/.exec(
      row,
    );
    const path = pathOf(frame?.[1]);
    if (path === undefined) continue;
    if (path === until) break;
    const place = { path, line: Number(frame?.[2]), column: Number(frame?.[3]) };
    if (!/[\\/]node_modules[\\/]/.test(path)) return place;
    inPackage ??= place;
  }
  return inPackage;
}

/**
 * The place that Node prints above a syntax error: `file:line`, the source line, and carets under it.
 */
export function placeInHead(text: string): SourcePlace | undefined {
  const rows = text.split('\n');
  const start = rows.findIndex((row) => /^(?:file:\/\/|\/|[A-Za-z]:\\).*:\d+$/.test(row));
  const head = /^(.*):(\d+)$/.exec(rows[start] ?? '');
  const path = pathOf(head?.[1]);
  if (path === undefined) return undefined;
  const line = Number(head?.[2]);
  const carets = rows.findIndex((row, index) => index > start && /^\s*\^+$/.test(row));
  const shown = rows[carets - 1];
  // Node shows tabs as spaces, and wide characters shift the carets: then the column is unknown.
  const exact = shown !== undefined && /^[\t\x20-\x7e]*$/.test(shown) && shown === lineOf(path, line);
  return { path, line, column: exact ? (rows[carets] ?? '').indexOf('^') + 1 : undefined };
}

function pathOf(location: string | undefined): string | undefined {
  if (location === undefined || !location.startsWith('file://')) return location;
  try {
    return fileURLToPath(location.replace(/[?#].*$/, ''));
  } catch {
    return undefined;
  }
}

function lineOf(path: string, line: number): string | undefined {
  try {
    return readFileSync(path, 'utf8').split(/\r?\n/)[line - 1];
  } catch {
    return undefined;
  }
}
