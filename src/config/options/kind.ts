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
  const accept = (text: string): string | undefined => (isValid(text) ? text : undefined);
  return {
    placeholder,
    expected,
    fromText: accept,
    fromValue: (value) => (typeof value === 'string' ? accept(value) : undefined),
  };
}

/** A whole number within bounds, both included. */
export function integerKind(placeholder: string, min: number, max: number, unit = ''): Kind<number> {
  const accept = (value: number): number | undefined => {
    return Number.isInteger(value) && value >= min && value <= max ? value : undefined;
  };
  return {
    placeholder,
    expected: `a whole number from ${min} to ${max}${unit}`,
    fromText: (text) => (/^(0|-?[1-9]\d*)$/.test(text) ? accept(Number(text)) : undefined),
    // Adding 0 turns -0 into 0.
    fromValue: (value) => (typeof value === 'number' && accept(value) !== undefined ? value + 0 : undefined),
  };
}

/** One of a few words. */
export function choiceKind<C extends string>(choices: readonly C[]): Kind<C> {
  const accept = (value: unknown): C | undefined => choices.find((choice) => choice === value);
  return {
    placeholder: 'word',
    expected: `one of ${choices.join(', ')}`,
    fromText: accept,
    fromValue: accept,
  };
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

/** Texts separated by commas; an array of texts in the configuration module. */
export function listKind<I extends string>(rules: ListRules<I>): Kind<readonly I[]> {
  const accept = (items: readonly unknown[]): readonly I[] | undefined => {
    // Array.from turns the holes of a sparse array into undefined items.
    const valid = Array.from(items).filter(
      (item): item is I => typeof item === 'string' && rules.isItem(item),
    );
    if (valid.length !== items.length) return undefined;
    if (rules.atLeastOne && valid.length === 0) return undefined;
    if (rules.unique && new Set(valid).size !== valid.length) return undefined;
    return valid;
  };
  const fromText = (text: string): readonly I[] | undefined => {
    return accept(text.trim() === '' ? [] : text.split(',').map((item) => item.trim()));
  };
  return {
    placeholder: 'list',
    expected: rules.expected,
    fromText,
    fromValue: (value) => {
      if (typeof value === 'string') return fromText(value);
      return Array.isArray(value) ? accept(value) : undefined;
    },
  };
}
