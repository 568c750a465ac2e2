import { FixedTokens } from '../../http/access/fixed-tokens.ts';
import { ConfigError } from '../config-error.ts';
import { watchedFile } from '../watched-file.ts';
import type { GateSetting } from './open-gate.ts';
import { type ReadTokens, readApiTokens } from './read-tokens.ts';

/** The tokens of the configuration, which follow the files of their secrets. */
export interface LiveTokens extends Disposable {
  readonly source: FixedTokens;
}

/** Reads `api.tokens`; when a file changes they are read again, and stay as they are where that fails. Throws ConfigError. */
export function liveTokens(
  value: unknown,
  { resolve, name, log, onSecrets }: Pick<GateSetting, 'resolve' | 'name' | 'log' | 'onSecrets'>,
  scopes: readonly string[],
): LiveTokens {
  const read = (): ReadTokens => {
    const problems: string[] = [];
    const found = readApiTokens(value, { path: `${name}: api.tokens`, resolve, scopes }, problems);
    if (problems.length > 0) throw new ConfigError(problems);
    return found;
  };
  const textOf = ({ tokens }: ReadTokens) => JSON.stringify(tokens.map(({ secrets }) => secrets));
  const take = (found: ReadTokens) => {
    onSecrets?.(found.tokens.flatMap(({ secrets }) => secrets));
    return found.tokens;
  };

  const first = read();
  const source = new FixedTokens(take(first));
  let current = textOf(first);
  let problem: string | undefined;
  const readAgain = () => {
    try {
      const found = read();
      problem = undefined;
      if (textOf(found) === current) return;
      current = textOf(found);
      source.replace(take(found));
      log.info('tokens of the API reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      if (error.message === problem) return;
      problem = error.message;
      log.error({ problem }, 'changed tokens of the API unusable, old ones kept');
    }
  };
  const watched = new DisposableStack();
  for (const file of new Set(first.files)) {
    watched.use(watchedFile(file, readAgain));
  }
  return { source, [Symbol.dispose]: () => watched.dispose() };
}
