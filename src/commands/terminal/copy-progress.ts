import type { OnCopy } from '../../database/backup/copied-file.ts';
import { type Progress, showProgress } from './progress.ts';

/** Shows the progress of a copy of a database; disposing of it clears the line. */
export function showCopy(): Disposable & { readonly onCopy: OnCopy } {
  const shown = new DisposableStack();
  const lines = new Map<string, Progress>();
  return {
    onCopy(step, done, total) {
      const doing = step === 'copy' ? 'Copying pages:' : 'Checking tables:';
      const line = lines.get(step) ?? shown.use(showProgress(doing, total));
      lines.set(step, line);
      line.update(done);
    },
    [Symbol.dispose]: () => shown.dispose(),
  };
}
