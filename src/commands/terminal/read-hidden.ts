/**
 * Asks on the terminal for a line without echoing it; resolves to undefined when the user cancels.
 * Standard input must be a terminal.
 */
export function readHidden(question: string): Promise<string | undefined> {
  const { stdin, stderr } = process;
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let line: readonly string[] = [];

  const finish = (answer: string | undefined) => {
    stdin.off('data', onData).off('end', cancel).pause().setRawMode(false);
    stderr.write('\n');
    resolve(answer);
  };
  const cancel = () => finish(undefined);
  function onData(text: string): void {
    for (const [at, key] of Array.from(text).entries()) {
      if (key === '\r' || key === '\n') {
        // The rest of what was pasted belongs to the next question.
        const rest = Array.from(text)
          .slice(at + 1)
          .join('');
        finish(line.join(''));
        if (rest !== '') stdin.unshift(rest);
        return;
      }
      if (key === '\u0003' || key === '\u0004') {
        cancel();
        return;
      }
      if (key === '\u007f' || key === '\b') line = line.slice(0, -1);
      else if (key === '\u0015') line = [];
      else line = [...line, key];
    }
  }

  // Raw mode before the question, so that not even the first key is echoed.
  stdin.setRawMode(true).setEncoding('utf8').on('data', onData).on('end', cancel).resume();
  stderr.write(question);
  return promise;
}
