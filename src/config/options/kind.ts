import { socketPathOf, UNIX_ADDRESS, type UnixAddress } from '../../core/unix-address.ts';

/** The type of an option's value, and how it is parsed from text and from the configuration module. */
export interface Kind<T> {
  /** Placeholder of the value in the help: `--rest-port <port>`. */
  readonly placeholder: string;
  /** Completes the sentence "must be …". */
  readonly expected: string;
  /** Parses a flag or variable; undefined when it is invalid. */
  fromText(text: string): T | undefined;
  /** Parses a value of the configuration module; undefined when it is invalid. */
  fromValue(value: unknown): T | undefined;
}

/** A text that `isValid` accepts; `expected` describes it. */
export function textKind(
  placeholder: string,
  expected: string,
  isValid: (text: string) => boolean,
): Kind<string> {
  const accept = (value: unknown) => (typeof value === 'string' && isValid(value) ? value : undefined);
  return { placeholder, expected, fromText: accept, fromValue: accept };
}

/** A whole number within bounds, both included. */
export function integerKind(placeholder: string, min: number, max: number, unit = ''): Kind<number> {
  const accept = (value: unknown): number | undefined => {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) return undefined;
    // Turns -0 into 0.
    return value + 0;
  };
  return {
    placeholder,
    expected: `a whole number from ${min} to ${max}${unit}`,
    fromText: (text) => (/^(0|-?[1-9]\d*)$/.test(text) ? accept(Number(text)) : undefined),
    fromValue: accept,
  };
}

/** A TCP port, or the address of a Unix socket. */
export function portKind(): Kind<number | UnixAddress> {
  const number = integerKind('port', 0, 65_535);
  const socket = (value: unknown) => (socketPathOf(value) === undefined ? undefined : (value as UnixAddress));
  return {
    placeholder: number.placeholder,
    expected: `${number.expected}, or ${UNIX_ADDRESS}`,
    fromText: (text) => number.fromText(text) ?? socket(text),
    fromValue: (value) => number.fromValue(value) ?? socket(value),
  };
}

/** One of a few words. */
export function choiceKind<C extends string>(choices: readonly C[]): Kind<C> {
  const accept = (value: unknown): C | undefined => choices.find((choice) => choice === value);
  const expected = `one of ${choices.join(', ')}`;
  return { placeholder: 'word', expected, fromText: accept, fromValue: accept };
}

/** A boolean. */
export function toggleKind(): Kind<boolean> {
  return {
    placeholder: 'true|false',
    expected: 'true or false',
    fromText: (text) => (text === 'true' || text === 'false' ? text === 'true' : undefined),
    fromValue: (value) => (typeof value === 'boolean' ? value : undefined),
  };
}

/** The rules for the items of a list. */
export interface ListRules<I extends string> {
  readonly expected: string;
  readonly atLeastOne: boolean;
  readonly unique: boolean;
  readonly isItem: (text: string) => text is I;
}

/** Texts separated by commas; in the configuration module also an array of texts. */
export function listKind<I extends string>(rules: ListRules<I>): Kind<readonly I[]> {
  const accept = (value: unknown): readonly I[] | undefined => {
    const items = typeof value === 'string' ? split(value) : value;
    if (!Array.isArray(items)) return undefined;
    // Array.from turns the holes of a sparse array into undefined items.
    const valid = Array.from(items).filter(
      (item): item is I => typeof item === 'string' && rules.isItem(item),
    );
    if (valid.length !== items.length) return undefined;
    if (rules.atLeastOne && valid.length === 0) return undefined;
    if (rules.unique && new Set(valid).size !== valid.length) return undefined;
    return valid;
  };
  return { placeholder: 'list', expected: rules.expected, fromText: accept, fromValue: accept };
}

function split(text: string): readonly string[] {
  return text.trim() === '' ? [] : text.split(',').map((item) => item.trim());
}
