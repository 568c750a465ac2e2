import { createContext, Script } from 'node:vm';
import { HttpProblem } from '../http/problem.ts';

const MAX_LENGTH = 200;
/** In milliseconds; the process does nothing else meanwhile, and a hundred names take a fraction of one. */
const TIME_LIMIT = 50;

/** The names in which a regular expression matches something. Throws HttpProblem 400 for one that is none. */
export type NameMatcher = (pattern: string, names: readonly string[]) => ReadonlySet<string>;

/**
 * Makes a matcher for expressions that clients send. Some expressions take years on a short name, so it
 * stops after 50 ms and refuses the expression: no rule about its form would catch them all.
 */
export function nameMatcher(): NameMatcher {
  // Only code in a context of its own can be stopped; the context is made when somebody asks.
  let run: ((expression: RegExp, names: readonly string[]) => string[]) | undefined;
  return (pattern, names) => {
    const expression = parse(pattern);
    run ??= interruptible();
    try {
      return new Set(run(expression, names));
    } catch (cause) {
      throw new HttpProblem(
        400,
        'SLOW_PATTERN',
        `The pattern takes more than ${TIME_LIMIT} ms; simplify it`,
        {
          cause,
        },
      );
    }
  };
}

function parse(pattern: string): RegExp {
  if (pattern.length > MAX_LENGTH) {
    throw new HttpProblem(400, 'LONG_PATTERN', `The pattern is longer than ${MAX_LENGTH} characters`);
  }
  try {
    return new RegExp(pattern);
  } catch (cause) {
    throw new HttpProblem(400, 'BAD_PATTERN', 'The pattern is no regular expression', { cause });
  }
}

function interruptible() {
  const script = new Script('names.filter((name) => expression.test(name))');
  const globals = createContext({});
  return (expression: RegExp, names: readonly string[]): string[] => {
    Object.assign(globals, { expression, names });
    return script.runInContext(globals, { timeout: TIME_LIMIT }) as string[];
  };
}
