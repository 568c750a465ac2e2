import assert from 'node:assert/strict';
import { test } from 'node:test';
import ts from 'typescript5';
import { describeLogMessages } from './log-messages.ts';

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2024,
  lib: ['lib.es2024.d.ts'],
  types: [],
  strict: true,
};

const SOURCE = `
interface Log { info(message: string): void; info(fields: object, message: string): void; warn(fields: object, message: string): void }
type Level = 'info' | 'warn';
declare const app: { readonly log: Log | undefined };
declare const out: Pick<Log, 'warn'>;
declare const plan: { info(field: number): string; error(cause: unknown): void };
declare const state: 'replayed' | 'discarded';
declare const count: number;
declare const fields: Record<string, unknown>;
declare const known: { readonly status: number; readonly reason?: string };
function limited<L extends Level = 'info'>(log: Pick<Log, L>, message: string, level: L = 'info' as L): void {}
class Part {
  readonly #report: Log;
  constructor(report: Log) { this.#report = report; }
  run() { this.#report.info({ ...known, count }, 'run'); }
}
app.log?.info('ready');
out.warn(fields, 'late by ' + count + ' s');
app.log?.info({ state }, \`delivery \${state} on request\`);
app.log?.info(count > 1 ? 'several' : ('one' as string));
limited(out, 'too many', 'warn');
limited(app.log!, 'many');
plan.info(count);
plan.error('no message');
`;

test('a message is found whatever the logger is called and however it is passed on', () => {
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile } = host;
  host.getSourceFile = (path, target) =>
    path === '/made-up/part.ts' ? ts.createSourceFile(path, SOURCE, target) : getSourceFile(path, target);
  const program = ts.createProgram({ rootNames: ['/made-up/part.ts'], options: OPTIONS, host });
  assert.deepEqual(
    program.getSemanticDiagnostics().map(({ messageText }) => messageText),
    [],
  );
  assert.deepEqual(describeLogMessages(program, (file) => file.startsWith('/made-up/')).split('\n'), [
    'delivery discarded on request (info) {state}',
    'delivery replayed on request (info) {state}',
    'late by {} s (warn) {...}',
    'many (info)',
    'one (info)',
    'ready (info)',
    'run (info) {count, reason?, status}',
    'several (info)',
    'too many (warn)',
  ]);
});
