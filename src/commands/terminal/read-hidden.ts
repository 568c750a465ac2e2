import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/**
 * Asks on the terminal for lines without echoing them; resolves to undefined when the user cancels.
 * Standard input must be a terminal.
 */
export function readHidden(...questions: readonly string[]): Promise<readonly string[] | undefined> {
  const { stdin, stderr } = process;
  const { promise, resolve } = Promise.withResolvers<readonly string[] | undefined>();
  const muted = new Writable({ write: (_chunk, _encoding, done) => done() });
  // One for all questions: what is pasted may answer several. Without a history, which would keep a password.
  const terminal = createInterface({ input: stdin, output: muted, terminal: true, historySize: 0 });
  const lines: string[] = [];
  const ask = () => stderr.write(questions[lines.length] ?? '');
  terminal.on('line', (line) => {
    lines.push(line);
    stderr.write('\n');
    if (lines.length < questions.length) ask();
    else terminal.close();
  });
  terminal.on('SIGINT', () => terminal.close());
  // Ctrl+D only ends an empty line by itself.
  stdin.on('keypress', (_text, key) => {
    if (key.ctrl && key.name === 'd') terminal.close();
  });
  terminal.once('close', () => {
    const complete = lines.length === questions.length;
    if (!complete) stderr.write('\n');
    resolve(complete ? lines : undefined);
  });
  ask();
  return promise;
}
