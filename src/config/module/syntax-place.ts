import { execFile } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { placeInHead, type SourcePlace } from './source-place.ts';

/**
 * The place of a syntax error in a module or in one that it imports; undefined when it cannot be told.
 * Node keeps the place out of an error that `import()` threw, but prints it when the error ends a process. So a
 * second one imports the module and ends before anything of it runs: its first import is evaluated first.
 */
export function syntaxPlace(path: string): Promise<SourcePlace | undefined> {
  const program = `import 'data:text/javascript,process.exit(0)';\nimport ${JSON.stringify(pathToFileURL(path).href)};`;
  const limits = { timeout: 5_000, windowsHide: true };
  return new Promise((resolve) => {
    const done = (_error: unknown, _output: string, message: string) => resolve(placeInHead(message));
    try {
      execFile(process.execPath, ['--input-type=module', '--eval', program], limits, done);
    } catch {
      // A process that may not start others: the message goes without a line.
      resolve(undefined);
    }
  });
}
