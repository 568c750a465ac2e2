import { execFile } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { placeInHead, type SourcePlace } from './source-place.ts';

/**
 * The place of a syntax error in a module or its imports; undefined when it cannot be found. An error of `import()`
 * lacks the place, but Node prints it when the error ends a process. So a child process imports the module and exits
 * before any of it runs, since its first import is evaluated first.
 */
export function syntaxPlace(path: string): Promise<SourcePlace | undefined> {
  const program = `import 'data:text/javascript,process.exit(0)';\nimport ${JSON.stringify(pathToFileURL(path).href)};`;
  const limits = { timeout: 5_000, windowsHide: true };
  return new Promise((resolve) => {
    const done = (_error: unknown, _output: string, message: string) => resolve(placeInHead(message));
    try {
      execFile(process.execPath, ['--input-type=module', '--eval', program], limits, done);
    } catch {
      // The process lacks the permission to start others.
      resolve(undefined);
    }
  });
}
