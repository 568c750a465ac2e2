import * as v from 'valibot';
import { socketPathOf, UNIX_ADDRESS, type UnixAddress } from '../../core/addresses.ts';
import { describeValue } from '../../core/text.ts';

/** The groups of the documentation and of `help serve`, with their titles, in their order. */
export const groups = {
  service: 'The service',
  database: 'Database and users',
  graphql: 'GraphQL',
  rest: 'REST',
  management: 'Management',
  webhook: 'Webhooks',
} as const;

/** The name of a group. */
export type Group = keyof typeof groups;

/** One setting: its type, default and documentation. Only an option has a variable and a flag; a limit has none. */
export interface Setting<T> {
  readonly kind: Kind<Exclude<T, undefined>>;
  readonly default: T;
  /** A noun phrase with the unit, for the help and the documentation. */
  readonly help: string;
  /** Whether the value is never shown, and may also come from the file that `<env>_FILE` names. */
  readonly secret: boolean;
  /** The meaning of an unset option without a default; undefined if it has a default. */
  readonly unset: string | undefined;
  /** Whether it is among the few that most services change, which the help shows first. */
  readonly essential: boolean;
  readonly group: Group;
}

/** A setting that a flag and an environment variable set too. */
export interface Option<T> extends Setting<T> {
  readonly env: string;
}

/** A key that only a module can contain. The module that owns the subject reads its value. */
export interface ModuleKey {
  readonly shape: string;
  readonly help: string;
  /** Whether its value is plain data, which a JSON file may contain too. */
  readonly json: boolean;
  readonly group: Group;
}

/** A key of a module, documented by its shape. */
export function inModule(spec: Pick<ModuleKey, 'shape' | 'help'> & { readonly json?: true }): ModuleKey {
  return { json: false, group: 'service', ...spec };
}

interface Described {
  readonly env?: string;
  readonly help: string;
  readonly secret?: boolean;
  readonly essential?: boolean;
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
interface WithVariable {
  readonly env: string;
}
/** The setting of a spec: without a default its value may be undefined. */
type OptionOf<T, S> = S extends { readonly env: string }
  ? Option<S extends WithoutDefault ? T | undefined : T>
  : Setting<S extends WithoutDefault ? T | undefined : T>;

interface ItemRules {
  readonly expected: string;
  readonly pattern: Pick<RegExp, 'test'>;
}
interface TextRules extends Partial<ItemRules> {
  readonly placeholder?: string;
}

function option<T, S extends Spec<T>>(kind: Kind<T>, spec: S): OptionOf<T, S> {
  const { env, default: value, help, secret = false, essential = false, unset } = spec;
  const setting = { kind, default: value, help, secret, essential, unset, group: 'service' };
  // The compiler cannot decide the type for a generic S.
  return { ...setting, ...(env && { env }) } as unknown as OptionOf<T, S>;
}

/** A text without control characters, or one that matches `pattern`; `expected` describes it. */
export function text<const S extends Spec<string> & TextRules>(spec: S): OptionOf<string, S> {
  const {
    placeholder = 'text',
    expected = 'a text without control characters',
    pattern = /^\P{Cc}+$/u,
  } = spec;
  return option<string, S>(kind(placeholder, expected, textSchema(pattern)), spec);
}

/** A list of texts; not empty if the option has no default. */
export function list<const S extends Spec<readonly string[]> & ItemRules>(
  spec: S,
): OptionOf<readonly string[], S> {
  const schema = listSchema(textSchema(spec.pattern), spec.unset === undefined ? 0 : 1, false);
  return option<readonly string[], S>(kind('list', spec.expected, schema), spec);
}

/** One of several choices. */
export function choice<const C extends readonly string[], const S extends Spec<NoInfer<C[number]>>>(
  spec: S & { readonly choices: C },
): OptionOf<C[number], S> {
  const schema = v.picklist<C>(spec.choices);
  return option<C[number], S>(kind('word', `one of ${spec.choices.join(', ')}`, schema), spec);
}

/** A set of choices, at least one. */
export function someOf<const C extends readonly string[]>(
  spec: WithDefault<readonly C[number][]> & WithVariable & { readonly choices: C },
): Option<readonly C[number][]> {
  const expected = `a list with at least one of ${spec.choices.join(', ')}, each at most once`;
  const schema = listSchema<C[number]>(v.picklist<C>(spec.choices), 1, true);
  return option(kind<readonly C[number][]>('list', expected, schema), spec);
}

/** A TCP port, or `unix:` and the path of a socket. With port 0 the system picks a free one. */
export function port(spec: WithDefault<number | UnixAddress> & WithVariable): Option<number | UnixAddress> {
  const number = integerKind('port', 0, 65_535);
  const isSocket = (text: string) => socketPathOf(text) !== undefined;
  const socket = v.pipe(
    v.string(),
    v.check(isSocket),
    v.transform((text) => text as UnixAddress),
  );
  const schema = v.union([number.schema, socket]);
  return option(kind(number.placeholder, `${number.expected}, or ${UNIX_ADDRESS}`, schema, numberIn), spec);
}

/** A whole number of at least `min` (default 0), in milliseconds or without a unit. */
export function count<
  const S extends Spec<number> & { readonly unit?: 'ms'; readonly min?: number; readonly max?: number },
>(spec: S): OptionOf<number, S> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER, unit } = spec;
  const kind =
    unit === undefined ? integerKind('n', min, max) : integerKind(unit, min, max, ' (milliseconds)');
  return option<number, S>(kind, spec);
}

/** A boolean. */
export function toggle(spec: WithDefault<boolean> & WithVariable): Option<boolean> {
  const written = (text: string) => (text === 'true' || text === 'false' ? text === 'true' : text);
  return option(kind('true|false', 'true or false', v.boolean(), written), spec);
}

const segments = '(?:\\/(?!\\.(?:\\/|$))(?:(?!\\.\\.)[\\w.~-])+)+';

/** A URL path without characters that URLs or routers interpret; `root` allows `/` alone. */
export function path(spec: WithDefault<string> & WithVariable & { readonly root: boolean }): Option<string> {
  const unless = spec.root ? ' unless it is "/" alone' : '';
  const expected =
    `a path like ${spec.default}: it begins with "/", does not end with "/"${unless}, ` +
    'and between slashes has only letters, digits, "_", "~", "-" and single "."';
  const pattern = new RegExp(`^(?:${segments}${spec.root ? '|\\/' : ''})$`);
  return option(kind('path', expected, textSchema(pattern)), spec);
}

/** The flag of an option: `management.basePath` is `--management-base-path`. */
export function flagOf(key: string): string {
  return `--${key.replaceAll('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The default in the help and the documentation. */
export function formatDefault(option: Setting<unknown>): string {
  const value = option.default;
  if (value === undefined) return `unset: ${option.unset}`;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(',');
  return String(value);
}

/** The values that an option takes. */
interface Kind<T> {
  /** Placeholder of the value in the help: `--rest-port <port>`. */
  readonly placeholder: string;
  /** Completes the sentence "must be …". */
  readonly expected: string;
  /** The values of the configuration module. */
  readonly schema: v.GenericSchema<unknown, T>;
  /** Parses a flag or variable; undefined if it is invalid. */
  fromText(text: string): T | undefined;
  /** Parses a value of the configuration module; undefined if it is invalid. */
  fromValue(value: unknown): T | undefined;
}

/** `written` turns the text of a flag or variable into what a module would contain. */
function kind<T>(
  placeholder: string,
  expected: string,
  schema: v.GenericSchema<unknown, T>,
  written: (text: string) => unknown = (text) => text,
): Kind<T> {
  const fromValue = (value: unknown) => {
    const { success, output } = v.safeParse(schema, value);
    return success ? output : undefined;
  };
  return { placeholder, expected, schema, fromValue, fromText: (text) => fromValue(written(text)) };
}

/** A text that matches the pattern; JSON Schema shows it only if it is a regular expression. */
function textSchema(pattern: Pick<RegExp, 'test'>) {
  const matches =
    pattern instanceof RegExp ? v.regex(pattern) : v.check((text: string) => pattern.test(text));
  return v.pipe(v.string(), matches);
}

/** A whole number within inclusive bounds. */
function integerKind(placeholder: string, min: number, max: number, unit = ''): Kind<number> {
  // The transformation turns -0 into 0.
  const within = v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
  const schema = v.pipe(
    within,
    v.transform((value) => value + 0),
  );
  return kind(placeholder, `a whole number from ${min} to ${max}${unit}`, schema, numberIn);
}

function numberIn(text: string): unknown {
  return /^(?:0|-?[1-9]\d*)$/.test(text) ? Number(text) : text;
}

/** A list of items, or the same as one text with commas. */
function listSchema<T extends string>(item: v.GenericSchema<string, T>, atLeast: number, unique: boolean) {
  const isUnique = (list: T[]) => !unique || new Set(list).size === list.length;
  const list = v.pipe(v.array(item), v.minLength(atLeast), v.check(isUnique));
  return v.union([list, v.pipe(v.string(), v.transform(split), list)]);
}

function split(text: string): string[] {
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
export function parseText(option: Setting<unknown>, place: Place, text: string): Parsed {
  return accept(option, place, text, option.kind.fromText(text));
}

/** Parses a value of the configuration module. */
export function parseValue(option: Setting<unknown>, place: Place, given: unknown): Parsed {
  return accept(option, place, given, option.kind.fromValue(given));
}

function accept(option: Setting<unknown>, place: Place, given: unknown, value: unknown): Parsed {
  // Some patterns also match blanks.
  if (typeof given === 'string' && given.trim() === '' && option.kind.fromText('') === undefined) {
    return { problem: empty(option, place) };
  }
  if (value !== undefined) return { value };
  const but = option.secret ? '' : `, not ${describeValue(given)}`;
  return { problem: `${place.name} must be ${option.kind.expected}${but}` };
}

function empty(option: Setting<unknown>, place: Place): string {
  if (option.default !== undefined) {
    return `${place.name} is empty; ${place.drop} for the default (${formatDefault(option)})`;
  }
  const remedy = option.secret ? `${place.drop} to leave the door unsecured` : place.drop;
  return `${place.name} is empty; ${remedy}`;
}
