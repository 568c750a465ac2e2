import { choiceKind, integerKind, type Kind, listKind, textKind, toggleKind } from './kind.ts';

/** One option: its environment variable, type, default and documentation. */
export interface Option<T> {
  readonly kind: Kind<Exclude<T, undefined>>;
  readonly env: string;
  readonly default: T;
  /** A noun phrase with the unit, for the help and the documentation. */
  readonly description: string;
  /** Whether its value is never shown and may also come from the file that `<env>_FILE` names. */
  readonly secret: boolean;
  /** What an unset option without a default means; undefined when there is a default. */
  readonly unset: string | undefined;
}

interface Described {
  readonly env: string;
  readonly description: string;
  readonly secret?: boolean;
}
interface WithDefault<T> extends Described {
  readonly default: T;
}
/** An option that may be unset; `unset` says what that means. */
export interface WithoutDefault extends Described {
  readonly unset: string;
}
interface TextRules {
  readonly placeholder?: string;
  readonly expected?: string;
  readonly pattern?: RegExp;
}
interface ItemRules {
  readonly expected: string;
  readonly pattern: RegExp;
}

function withDefault<T>(kind: Kind<Exclude<T, undefined>>, spec: WithDefault<T>): Option<T> {
  const { env, description, secret = false } = spec;
  return { kind, env, default: spec.default, description, secret, unset: undefined };
}

/** An optional option of any kind. */
export function withoutDefault<T>(kind: Kind<T>, spec: WithoutDefault): Option<T | undefined> {
  const { env, description, secret = false, unset } = spec;
  // Kind<T | undefined> is Kind<T>, which the compiler cannot prove for a generic T.
  return { kind: kind as Kind<Exclude<T, undefined>>, env, default: undefined, description, secret, unset };
}

function textOf(rules: TextRules): Kind<string> {
  const {
    placeholder = 'text',
    expected = 'a text without control characters',
    pattern = /^\P{Cc}+$/u,
  } = rules;
  return textKind(placeholder, expected, (text) => pattern.test(text));
}

function itemsOf(rules: ItemRules, atLeastOne: boolean): Kind<readonly string[]> {
  const isItem = (item: string): item is string => rules.pattern.test(item);
  return listKind({ expected: rules.expected, atLeastOne, unique: false, isItem });
}

/** A text without control characters, or one that matches `pattern` and is described by `expected`. */
export function text(spec: WithDefault<string> & TextRules): Option<string> {
  return withDefault(textOf(spec), spec);
}

/** An optional text. */
export function optionalText(spec: WithoutDefault & TextRules): Option<string | undefined> {
  return withoutDefault(textOf(spec), spec);
}

/** A list of texts; it may be empty. */
export function list(spec: WithDefault<readonly string[]> & ItemRules): Option<readonly string[]> {
  return withDefault(itemsOf(spec, false), spec);
}

/** An optional list of texts; when given, not empty. */
export function optionalList(spec: WithoutDefault & ItemRules): Option<readonly string[] | undefined> {
  return withoutDefault(itemsOf(spec, true), spec);
}

/** One of several choices. */
export function choice<const C extends readonly string[]>(
  spec: WithDefault<C[number]> & { readonly choices: C },
): Option<C[number]> {
  return withDefault<C[number]>(choiceKind<C[number]>(spec.choices), spec);
}

/** An optional choice. */
export function optionalChoice<const C extends readonly string[]>(
  spec: WithoutDefault & { readonly choices: C },
): Option<C[number] | undefined> {
  return withoutDefault<C[number]>(choiceKind<C[number]>(spec.choices), spec);
}

/** A set of choices, at least one. */
export function someOf<const C extends readonly string[]>(
  spec: WithDefault<readonly C[number][]> & { readonly choices: C },
): Option<readonly C[number][]> {
  const isItem = (item: string): item is C[number] => spec.choices.includes(item);
  const expected = `a list with at least one of ${spec.choices.join(', ')}, each at most once`;
  const kind = listKind<C[number]>({ expected, atLeastOne: true, unique: true, isItem });
  return withDefault<readonly C[number][]>(kind, spec);
}

/** A TCP port; 0 lets the system pick a free one. */
export function port(spec: WithDefault<number>): Option<number> {
  return withDefault(integerKind('port', 0, 65_535), spec);
}

/** A count from `min` (default 0) on. */
export function count(spec: WithDefault<number> & { readonly min?: number }): Option<number> {
  return withDefault(integerKind('n', spec.min ?? 0, Number.MAX_SAFE_INTEGER), spec);
}

/** A boolean. */
export function toggle(spec: WithDefault<boolean>): Option<boolean> {
  return withDefault(toggleKind(), spec);
}

/** A duration in milliseconds, between two bounds. */
export function duration(
  spec: WithDefault<number> & { readonly min: number; readonly max: number },
): Option<number> {
  return withDefault(integerKind('ms', spec.min, spec.max, ' (milliseconds)'), spec);
}

/** A duration in milliseconds, between two bounds, that may be unset. */
export function optionalDuration(
  spec: WithoutDefault & { readonly min: number; readonly max: number },
): Option<number | undefined> {
  return withoutDefault(integerKind('ms', spec.min, spec.max, ' (milliseconds)'), spec);
}

const segments = '(?:\\/(?!\\.(?:\\/|$))(?:(?!\\.\\.)[\\w.~-])+)+';

/** A URL path without characters that URLs or routers interpret; `root` allows `/` alone. */
export function path(spec: WithDefault<string> & { readonly root: boolean }): Option<string> {
  const unless = spec.root ? ' unless it is "/" alone' : '';
  const expected =
    `a path like ${spec.default}: it begins with "/", does not end with "/"${unless}, ` +
    'and between slashes has only letters, digits, "_", "~", "-" and single "."';
  const pattern = new RegExp(`^(?:${segments}${spec.root ? '|\\/' : ''})$`);
  return withDefault(
    textKind('path', expected, (text) => pattern.test(text)),
    spec,
  );
}

/** The flag of an option: `management.basePath` is `--management-base-path`. */
export function flagOf(key: string): string {
  return `--${key.replaceAll('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The default as the help and the documentation show it. */
export function formatDefault(option: Option<unknown>): string {
  const value = option.default;
  if (value === undefined) return `unset: ${option.unset}`;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(',');
  return String(value);
}
