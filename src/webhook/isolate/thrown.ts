import { describeError } from '../../core/describe-error.ts';

/** An error on its way between threads: a clone of the error itself would lose its class and its own fields. */
export interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: string | undefined;
}

/** What another thread is told of something thrown; whatever it was. */
export function thrownOf(error: unknown): Thrown {
  const text = describeError(error);
  const end = text.indexOf(': ');
  const [name, message] = [text.slice(0, end), text.slice(end + 2)];
  return { name, message, stack: textOf(error, 'stack'), code: textOf(error, 'code') };
}

/** The error that another thread has thrown, of a class with the same name. */
export function errorOf({ name, message, stack, code }: Thrown): Error {
  const { [name]: Named = Error } = { [name]: class extends Error {} };
  const error = new Named(message);
  Object.defineProperty(error, 'name', { value: name });
  if (stack !== undefined) error.stack = stack;
  return code === undefined ? error : Object.assign(error, { code });
}

function textOf(error: unknown, key: 'stack' | 'code'): string | undefined {
  try {
    const value = (error as { readonly [K in typeof key]?: unknown } | null | undefined)?.[key];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
