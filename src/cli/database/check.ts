import { DatabaseOpenError } from '../../core/errors.ts';
import { type Paint, paintFor } from '../../core/text.ts';
import { parseDatabaseUrl } from '../../sql/database.ts';
import type { Finding } from '../../sql/postgres-check/check.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import { INTERRUPTED, interruption, note, printJson, printPainted } from '../terminal.ts';

/** Exit codes besides 0, which says that every promise holds. */
const EXIT = { fails: 1, unreachable: 2, unknown: 3 } as const;

/**
 * `portico database check`. Resolves to the exit code: 0 when every promise holds, 1 when one fails, 2 when no server
 * answers, 3 when none fails and one could not be tried, 130 when interrupted. Rejects with UsageError or ConfigError.
 */
export const checkDatabase: Command = {
  usage: {
    topic: 'database check',
    words: '[url] [options]',
    maxWords: 1,
    about:
      'Tries on a PostgreSQL server, promise by promise, whether Portico keeps its word there. It makes a schema with a ' +
      'random name, runs the migrations and statements of Portico in it from several sessions, and removes it. Without a ' +
      'URL it checks the database of the configuration. Exit code 0: every promise holds; 1: one fails; 2: no server ' +
      'answers; 3: none fails, but one could not be tried.',
    options: { ...JSON_OPTION },
    examples: ['portico database check', 'portico database check postgres://portico@db.example.org/portico'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(checkDatabase.usage, argv, io);
  const url = await urlOf(args);
  const { checkPostgres } = await import('../../sql/postgres-check/check.ts');
  using signal = interruption(io);
  const paint = paintFor(io.stdout, io.env);
  const findings: Finding[] = [];
  try {
    for await (const finding of checkPostgres(url, { signal })) {
      findings.push(finding);
      if (!args.has('--json')) await printPainted(io, textOf(finding, paint));
    }
  } catch (error) {
    if (!(error instanceof DatabaseOpenError)) throw error;
    note(io, `portico: ${error.message}`);
    return EXIT.unreachable;
  }
  const count = (verdict: Finding['verdict']) => findings.filter((each) => each.verdict === verdict).length;
  const counts = { holds: count('holds'), fails: count('fails'), unknown: count('unknown') };
  if (args.has('--json')) await printJson(io, { complete: !signal.aborted, ...counts, findings });
  else if (!signal.aborted) await printPainted(io, `${summaryOf(counts)}\n`);
  if (signal.aborted) {
    note(io, 'Interrupted.');
    return INTERRUPTED;
  }
  return counts.fails > 0 ? EXIT.fails : counts.unknown > 0 ? EXIT.unknown : 0;
}

async function urlOf(args: CommandArguments): Promise<string> {
  const [given] = args.words;
  const url = given ?? (await args.configuration()).settings['database.url'];
  if (parseDatabaseUrl(url)?.engine === 'postgres') return url;
  throw args.misuse(
    given === undefined
      ? 'The database of the configuration is not PostgreSQL; name one: portico database check postgres://...'
      : 'The URL must start with postgres://',
  );
}

const STYLES = { holds: 'green', fails: 'red', unknown: 'yellow' } as const;
/** Width of the verdicts. */
const WIDTH = 9;

function textOf({ check, promise, verdict, seen, meaning }: Finding, paint: Paint): string {
  const head = `${paint(STYLES[verdict], verdict.padEnd(WIDTH))}${check}: ${seen}\n`;
  if (verdict === 'holds') return head;
  const indent = ' '.repeat(WIDTH);
  return `${head}${indent}Promise: ${promise}.\n${meaning === null ? '' : `${indent}${meaning}\n`}`;
}

function summaryOf({ holds, fails, unknown }: Readonly<Record<Finding['verdict'], number>>): string {
  const all = holds + fails + unknown;
  if (holds === all) return `All ${all} promises hold.`;
  return `${holds} of ${all} promises hold, ${fails} ${fails === 1 ? 'fails' : 'fail'}, ${unknown} could not be tried.`;
}
