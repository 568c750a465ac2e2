import { describeError } from '../../core/describe-error.ts';
import { oneLine } from '../../core/quote.ts';
import { hideSecrets } from '../../core/redaction.ts';
import { importer } from './import-module.ts';
import type { ModuleFile } from './module-file.ts';
import { formatPlace, placeInHead, placeInStack, type SourcePlace } from './source-place.ts';
import { syntaxPlace } from './syntax-place.ts';

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
  // The frames below the import are ours, not the module's.
  const place = placeInStack(stack, importer);
  if (!(error instanceof SyntaxError)) return place;
  return placeInHead(stack) ?? place ?? (await syntaxPlace(path));
}

/** The message of a syntax error without quoted source, which may hold a secret. */
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

/** Remedies for what Node says, by a pattern of it. */
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
