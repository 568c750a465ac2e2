import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConfigSource, loadConfig } from 'portico';
import type { HelpedSetting } from './wrong-configurations.ts';

/** Values that settings refuse, as text and in a module. */
const BAD_TEXT = '\u0001';
const BAD_VALUE = {};
const MODULE = 'portico.config.json';

/** An option as the help shows it. */
interface HelpEntry {
  readonly flag: string;
  readonly placeholder: string;
  readonly env: string;
  readonly secret: boolean;
  readonly text: string;
}

/**
 * Every setting: its key and default as `loadConfig` gives them, its flag, variable and text as `help` shows them, and
 * what it must be, as the flag, the variable and the module each answer to a wrong value. `cwd` is an empty folder.
 */
export async function describeSettings(help: string, cwd: string): Promise<string> {
  const { settings } = await loadConfig({ argv: [], env: {}, cwd });
  const defaults = flatten(settings);
  const entries = new Map(helpEntries(help).map((entry) => [entry.flag, entry]));
  const flags = await rules(
    Array.from(entries.values(), ({ flag }) => flag),
    (names) => ({ argv: names.map((name) => `${name}=${BAD_TEXT}`), env: {}, cwd }),
  );
  const variables = await rules(
    Array.from(entries.values(), ({ env }) => env),
    (names) => ({ argv: [], env: Object.fromEntries(names.map((name) => [name, BAD_TEXT])), cwd }),
  );
  const keys = await rules(defaults.keys(), (names) => {
    writeFileSync(join(cwd, MODULE), JSON.stringify(nest(names)));
    return { argv: [], env: {}, cwd };
  });

  const blocks = Array.from(defaults, ([key, value]) => {
    const entry = entries.get(flagOf(key));
    entries.delete(flagOf(key));
    const rule = keys.get(key) ?? '';
    return block(key, [
      ...(entry === undefined ? [] : sources(entry)),
      `default: ${value === undefined ? 'unset' : JSON.stringify(value)}`,
      `must be: ${rule}`,
      ...(entry === undefined ? [] : differing(entry.flag, flags, rule)),
      ...(entry === undefined ? [] : differing(entry.env, variables, rule)),
      ...(entry === undefined ? [] : [`help: ${entry.text}`]),
    ]);
  });
  const others = Array.from(entries.values(), (entry) =>
    block(`(no key) ${entry.flag}`, [...sources(entry), `help: ${entry.text}`]),
  );
  return [...blocks.sort(), ...others.sort()].join('\n\n');
}

function block(title: string, lines: readonly string[]): string {
  return [title, ...lines.map((line) => `  ${line}`)].join('\n');
}

function sources({ flag, placeholder, env, secret }: HelpEntry): readonly string[] {
  return [`flag: ${flag} <${placeholder}>`, `environment: ${env}${secret ? ` or ${env}_FILE, secret` : ''}`];
}

/** What a flag or variable must be, where that is not what the key must be. */
function differing(name: string, found: ReadonlyMap<string, string>, rule: string): readonly string[] {
  const own = found.get(name) ?? '';
  return own === rule ? [] : [`${name} must be: ${own}`];
}

/** The flag of a key: `management.basePath` is `--management-base-path`. */
function flagOf(key: string): string {
  return `--${key.replaceAll('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** What each name must be, by the problems of a configuration that sets all of them to what none takes. */
async function rules(
  names: Iterable<string>,
  configure: (names: readonly string[]) => ConfigSource,
): Promise<ReadonlyMap<string, string>> {
  const all = [...names];
  const found = new Map<string, string>();
  for (const problem of await problemsOf(configure(all))) {
    const [, name, rule] =
      /^(?:[\w.]+\.json: )?(\S+) must be (.*?)(?:, not (?:an object|"[^"]*"))?$/.exec(problem) ?? [];
    if (name !== undefined && rule !== undefined) found.set(name, rule);
  }
  // A name without a problem takes what the others refuse, or is not read at all.
  for (const name of all.filter((each) => !found.has(each))) {
    const source = configure([name]);
    const problems = await problemsOf(source);
    const values = problems.length > 0 ? [] : [...flatten((await loadConfig(source)).settings).values()];
    found.set(name, problems[0] ?? (values.includes(BAD_TEXT) ? '(not refused)' : '(not read)'));
  }
  return found;
}

async function problemsOf(source: ConfigSource): Promise<readonly string[]> {
  try {
    await loadConfig(source);
    return [];
  } catch (error) {
    const { problems } = error as { readonly problems?: readonly string[] };
    if (problems === undefined) throw error;
    return problems;
  }
}

/** The settings by their keys, whether they are nested or not. */
function flatten(settings: object, prefix = ''): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(settings).flatMap(([name, value]: [string, unknown]): (readonly [string, unknown])[] => {
      const isGroup = typeof value === 'object' && value !== null && !Array.isArray(value);
      return isGroup ? [...flatten(value, `${prefix}${name}.`)] : [[`${prefix}${name}`, value]];
    }),
  );
}

/** A module that sets each key to what it cannot be. */
function nest(keys: readonly string[]): object {
  const root: Record<string, unknown> = {};
  for (const key of keys) {
    const path = key.split('.');
    const last = path.pop() ?? '';
    let at = root;
    for (const name of path) {
      at[name] ??= {};
      at = at[name] as Record<string, unknown>;
    }
    at[last] = BAD_VALUE;
  }
  return root;
}

/** All keys with their flags and variables; those of a limit are the ones that it had as an option. */
export async function settingNames(help: string, cwd: string): Promise<readonly HelpedSetting[]> {
  const { settings } = await loadConfig({ argv: [], env: {}, cwd });
  const entries = new Map(helpEntries(help).map((entry) => [entry.flag, entry]));
  return Array.from(flatten(settings).keys())
    .toSorted()
    .map((key) => {
      const former = key.replace(/^limits\./, '');
      const variable = former.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase();
      return { key, flag: flagOf(former), env: entries.get(flagOf(key))?.env ?? variable };
    });
}

function helpEntries(help: string): readonly HelpEntry[] {
  const found: HelpEntry[] = [];
  const blocks = help.split(/\n(?= {0,2}\S)/);
  for (const entry of blocks) {
    const [, flag, placeholder, env, file, text] =
      /^ {2}(--[\w-]+) <([^>]+)>\s+([A-Z][A-Z0-9_]*)(\[_FILE\])?\n(.*)$/s.exec(entry) ?? [];
    if (flag === undefined || placeholder === undefined || env === undefined || text === undefined) continue;
    found.push({
      flag,
      placeholder,
      env,
      secret: file !== undefined,
      text: text.trim().replace(/\s+/g, ' '),
    });
  }
  return found;
}
