import type { UnixAddress } from '../../core/unix-address.ts';
import { choiceKind, integerKind, type Kind, listKind, portKind, textKind, toggleKind } from './kind.ts';

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
  readonly unset?: undefined;
}
/** An option that may be unset; `unset` says what that means. */
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
  // The compiler cannot decide the type for any S.
  return { kind, env, default: value, description, secret, unset } as unknown as OptionOf<T, S>;
}

/** A text without control characters, or one that matches `pattern` and is described by `expected`. */
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

/** A list of texts; not empty where it has no default. */
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

/** A TCP port, of which 0 lets the system pick a free one, or `unix:` and the path of a socket. */
export function port(spec: WithDefault<number | UnixAddress>): Option<number | UnixAddress> {
  return option(portKind(), spec);
}

/** A count from `min` (default 0) on. */
export function count<const S extends Spec<number> & { readonly min?: number }>(
  spec: S,
): OptionOf<number, S> {
  return option<number, S>(integerKind('n', spec.min ?? 0, Number.MAX_SAFE_INTEGER), spec);
}

/** A boolean. */
export function toggle(spec: WithDefault<boolean>): Option<boolean> {
  return option(toggleKind(), spec);
}

/** A duration in milliseconds, between two bounds. */
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

/** The default as the help and the documentation show it. */
export function formatDefault(option: Option<unknown>): string {
  const value = option.default;
  if (value === undefined) return `unset: ${option.unset}`;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(',');
  return String(value);
}
