import { socketPathOf, UNIX_ADDRESS, type UnixAddress } from '../../core/addresses.ts';
import { describeValue } from '../../core/text.ts';

/** One option: its environment variable, type, default and documentation. */
export interface Option<T> {
  readonly kind: Kind<Exclude<T, undefined>>;
  readonly env: string;
  readonly default: T;
  /** A noun phrase with the unit, for the help and the documentation. */
  readonly description: string;
  /** Whether the value is never shown, and may also come from the file that `<env>_FILE` names. */
  readonly secret: boolean;
  /** The meaning of an unset option without a default; undefined if it has a default. */
  readonly unset: string | undefined;
}

interface Described {
  readonly env: string;
  readonly description: string;
  readonly secret?: boolean;
}
interface WithDefault<T> extends Described {
  readonly default: T;
  readonly unset?: undefined;
}
/** An option that may be unset; `unset` describes the meaning. */
interface WithoutDefault extends Described {
  readonly default?: undefined;
  readonly unset: string;
}
type Spec<T> = WithDefault<T> | WithoutDefault;
/** The option of a spec: without a default its value may be undefined. */
type OptionOf<T, S> = Option<S extends WithoutDefault ? T | undefined : T>;

interface ItemRules {
  readonly expected: string;
  readonly pattern: Pick<RegExp, 'test'>;
}
interface TextRules extends Partial<ItemRules> {
  readonly placeholder?: string;
}

function option<T, S extends Spec<T>>(kind: Kind<T>, spec: S): OptionOf<T, S> {
  const { env, default: value, description, secret = false, unset } = spec;
  // The compiler cannot decide the type for a generic S.
  return { kind, env, default: value, description, secret, unset } as unknown as OptionOf<T, S>;
}

/** A text without control characters, or one that matches `pattern`; `expected` describes it. */
export function text<const S extends Spec<string> & TextRules>(spec: S): OptionOf<string, S> {
  const {
    placeholder = 'text',
    expected = 'a text without control characters',
    pattern = /^\P{Cc}+$/u,
  } = spec;
  return option<string, S>(
    textKind(placeholder, expected, (given) => pattern.test(given)),
    spec,
  );
}

/** A list of texts; not empty if the option has no default. */
export function list<const S extends Spec<readonly string[]> & ItemRules>(
  spec: S,
): OptionOf<readonly string[], S> {
  const isItem = (item: string): item is string => spec.pattern.test(item);
  const kind = listKind({
    expected: spec.expected,
    atLeastOne: spec.unset !== undefined,
    unique: false,
    isItem,
  });
  return option<readonly string[], S>(kind, spec);
}

/** One of several choices. */
export function choice<const C extends readonly string[], const S extends Spec<NoInfer<C[number]>>>(
  spec: S & { readonly choices: C },
): OptionOf<C[number], S> {
  return option<C[number], S>(choiceKind<C[number]>(spec.choices), spec);
}

/** A set of choices, at least one. */
export function someOf<const C extends readonly string[]>(
  spec: WithDefault<readonly C[number][]> & { readonly choices: C },
): Option<readonly C[number][]> {
  const isItem = (item: string): item is C[number] => spec.choices.includes(item);
  const expected = `a list with at least one of ${spec.choices.join(', ')}, each at most once`;
  return option(listKind({ expected, atLeastOne: true, unique: true, isItem }), spec);
}

/** A TCP port, or `unix:` and the path of a socket. With port 0 the system picks a free one. */
export function port(spec: WithDefault<number | UnixAddress>): Option<number | UnixAddress> {
  return option(portKind(), spec);
}

/** A count of at least `min` (default 0). */
export function count<const S extends Spec<number> & { readonly min?: number }>(
  spec: S,
): OptionOf<number, S> {
  return option<number, S>(integerKind('n', spec.min ?? 0, Number.MAX_SAFE_INTEGER), spec);
}

/** A boolean. */
export function toggle(spec: WithDefault<boolean>): Option<boolean> {
  return option(toggleKind(), spec);
}

/** A duration in milliseconds, within bounds. */
export function duration<const S extends Spec<number> & { readonly min: number; readonly max: number }>(
  spec: S,
): OptionOf<number, S> {
  return option<number, S>(integerKind('ms', spec.min, spec.max, ' (milliseconds)'), spec);
}

const segments = '(?:\\/(?!\\.(?:\\/|$))(?:(?!\\.\\.)[\\w.~-])+)+';

/** A URL path without characters that URLs or routers interpret; `root` allows `/` alone. */
export function path(spec: WithDefault<string> & { readonly root: boolean }): Option<string> {
  const unless = spec.root ? ' unless it is "/" alone' : '';
  const expected =
    `a path like ${spec.default}: it begins with "/", does not end with "/"${unless}, ` +
    'and between slashes has only letters, digits, "_", "~", "-" and single "."';
  const pattern = new RegExp(`^(?:${segments}${spec.root ? '|\\/' : ''})$`);
  return option(
    textKind('path', expected, (text) => pattern.test(text)),
    spec,
  );
}

/** The flag of an option: `management.basePath` is `--management-base-path`. */
export function flagOf(key: string): string {
  return `--${key.replaceAll('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The default in the help and the documentation. */
export function formatDefault(option: Option<unknown>): string {
  const value = option.default;
  if (value === undefined) return `unset: ${option.unset}`;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(',');
  return String(value);
}

/** The type of an option's value, and its parsers for text and for the configuration module. */
interface Kind<T> {
  /** Placeholder of the value in the help: `--rest-port <port>`. */
  readonly placeholder: string;
  /** Completes the sentence "must be …". */
  readonly expected: string;
  /** Parses a flag or variable; undefined if it is invalid. */
  fromText(text: string): T | undefined;
  /** Parses a value of the configuration module; undefined if it is invalid. */
  fromValue(value: unknown): T | undefined;
}

/** A text that `isValid` accepts; `expected` describes it. */
function textKind(placeholder: string, expected: string, isValid: (text: string) => boolean): Kind<string> {
  const accept = (value: unknown) => (typeof value === 'string' && isValid(value) ? value : undefined);
  return { placeholder, expected, fromText: accept, fromValue: accept };
}

/** A whole number within inclusive bounds. */
function integerKind(placeholder: string, min: number, max: number, unit = ''): Kind<number> {
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
function portKind(): Kind<number | UnixAddress> {
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
function choiceKind<C extends string>(choices: readonly C[]): Kind<C> {
  const accept = (value: unknown): C | undefined => choices.find((choice) => choice === value);
  const expected = `one of ${choices.join(', ')}`;
  return { placeholder: 'word', expected, fromText: accept, fromValue: accept };
}

/** A boolean. */
function toggleKind(): Kind<boolean> {
  return {
    placeholder: 'true|false',
    expected: 'true or false',
    fromText: (text) => (text === 'true' || text === 'false' ? text === 'true' : undefined),
    fromValue: (value) => (typeof value === 'boolean' ? value : undefined),
  };
}

/** The rules for the items of a list. */
interface ListRules<I extends string> {
  readonly expected: string;
  readonly atLeastOne: boolean;
  readonly unique: boolean;
  readonly isItem: (text: string) => text is I;
}

/** Texts separated by commas; in the configuration module also an array of texts. */
function listKind<I extends string>(rules: ListRules<I>): Kind<readonly I[]> {
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

/** A parsed value, or the problem in one line. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** Where a value was set, for messages. */
interface Place {
  /** Its name: `--rest-port`, `REST_PORT`, `portico.config.ts: rest.port`. */
  readonly name: string;
  /** How to remove it: `unset it`, `leave it out`. */
  readonly drop: string;
}

/** Parses the text of a flag or variable. */
export function parseText(option: Option<unknown>, place: Place, text: string): Parsed {
  return accept(option, place, text, option.kind.fromText(text));
}

/** Parses a value of the configuration module. */
export function parseValue(option: Option<unknown>, place: Place, given: unknown): Parsed {
  return accept(option, place, given, option.kind.fromValue(given));
}

function accept(option: Option<unknown>, place: Place, given: unknown, value: unknown): Parsed {
  // Some patterns also match blanks.
  if (typeof given === 'string' && given.trim() === '' && option.kind.fromText('') === undefined) {
    return { problem: empty(option, place) };
  }
  if (value !== undefined) return { value };
  const but = option.secret ? '' : `, not ${describeValue(given)}`;
  return { problem: `${place.name} must be ${option.kind.expected}${but}` };
}

function empty(option: Option<unknown>, place: Place): string {
  if (option.default !== undefined) {
    return `${place.name} is empty; ${place.drop} for the default (${formatDefault(option)})`;
  }
  const remedy = option.secret ? `${place.drop} to leave the door unsecured` : place.drop;
  return `${place.name} is empty; ${remedy}`;
}
