import { execFile } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeError } from '../core/errors.ts';
import { hideSecrets } from '../core/redaction.ts';
import { oneLine } from '../core/text.ts';
import { displayPath, importer, type ModuleFile } from './module.ts';

/** A configuration module that failed to load. */
export interface Failed {
  readonly file: ModuleFile;
  readonly cwd: string;
  /** Secrets to redact. */
  readonly secrets: readonly string[];
}

/** The reason why a configuration module failed to load, in one line, with the place if known. */
export async function describeLoadFailure(error: unknown, { file, cwd, secrets }: Failed): Promise<string> {
  const place = await placeOf(error, file.path);
  const at = place === undefined ? '' : ` (${formatPlace(place, cwd)})`;
  const message = oneLine(hideSecrets(withoutSource(error), secrets));
  return `${file.name} cannot be loaded: ${message}${at}${advice(error)}`;
}

async function placeOf(error: unknown, path: string): Promise<SourcePlace | undefined> {
  const stack: unknown = error instanceof Error ? error.stack : undefined;
  if (typeof stack !== 'string') return undefined;
  // The frames below the import are Portico's, not the module's.
  const place = placeInStack(stack, importer);
  if (!(error instanceof SyntaxError)) return place;
  return placeInHead(stack) ?? place ?? (await syntaxPlace(path));
}

/** The message of a syntax error without quoted source, which may contain a secret. */
function withoutSource(error: unknown): string {
  const text = describeError(error);
  if (!(error instanceof SyntaxError)) return text;
  return text
    .replace(
      /Unexpected token .*, (?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/s,
      'Unexpected token in JSON',
    )
    .replace(/Unexpected identifier '.*'$/s, 'Unexpected identifier');
}

/** Advice for Node's messages, by a pattern of the message. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /^TypeScript .* is not supported in strip-only mode/,
    'only types can be removed, so write it in JavaScript',
  ],
  [
    /^Cannot find package 'portico'/,
    'install Portico beside the file, or import nothing of it but types: "import type { PorticoConfig } from \'portico\'" ' +
      'and "export default { ... } satisfies PorticoConfig"',
  ],
  [
    /^(?:Cannot use import statement outside a module|Unexpected token 'export')/,
    'package.json makes it CommonJS: rename it so that it ends in .mts or .mjs, or set "type": "module" in package.json',
  ],
];

function advice(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const found = ADVICE.find(([pattern]) => pattern.test(message));
  return found === undefined ? '' : `; ${found[1]}`;
}

/** A place in a source file. Line and column count from 1. */
interface SourcePlace {
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

/**
 * The topmost frame above `until` that belongs to neither Node nor a package; a package's frame if there is
 * no other.
 */
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
function placeInHead(text: string): SourcePlace | undefined {
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

/**
 * The place of a syntax error in a module or its imports; undefined if it cannot be found. An error of
 * `import()` lacks the place, but Node prints it when the error ends a process. So a child process imports
 * the module; its first import exits before any code of the module runs.
 */
function syntaxPlace(path: string): Promise<SourcePlace | undefined> {
  const program = `import 'data:text/javascript,process.exit(0)';\nimport ${JSON.stringify(pathToFileURL(path).href)};`;
  const limits = { timeout: 20_000, windowsHide: true };
  return new Promise((resolve) => {
    const done = (_error: unknown, _output: string, message: string) => resolve(placeInHead(message));
    try {
      execFile(process.execPath, ['--input-type=module', '--eval', program], limits, done);
    } catch {
      // The process may not be permitted to start others.
      resolve(undefined);
    }
  });
}
