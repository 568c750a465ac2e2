import { flagOf, formatDefault, type Setting } from './options/option.ts';
import {
  limitKeys,
  moduleOption,
  type OptionKey,
  optionKeys,
  optionOf,
  type SettingKey,
  type Settings,
  settingKeys,
} from './options/options.ts';
import { codeKeys } from './schema/code.ts';
import { findProperty, type PropertySource } from './sources.ts';

/**
 * The sections of the documentation, by the first word of a key. A key that fits none is listed in the first.
 */
const SECTIONS: readonly { readonly title: string; readonly words: readonly string[] }[] = [
  { title: 'The service', words: [] },
  { title: 'Database and users', words: ['database', 'backup', 'users'] },
  { title: 'GraphQL', words: ['graphql'] },
  { title: 'REST', words: ['rest'] },
  { title: 'Management', words: ['management'] },
  { title: 'Webhooks', words: ['webhook'] },
];

/** The documentation of all options and code keys: Markdown tables by door, under second-level headings. */
export function renderOptions(): string {
  return SECTIONS.map(({ title }) => {
    const settings = optionKeys.filter((key) => sectionOf(key) === title).map(settingRow);
    const additions = codeKeys
      .filter(({ key }) => sectionOf(key) === title)
      .map(({ key, shape, description }) => [code(key), code(shape), description]);
    const limits = limitKeys.filter((key) => sectionOf(key) === title).map(limitRow);
    return [
      `## ${title}`,
      table(['Key', 'Flag', 'Environment', 'Default', 'Meaning'], [...moduleRow(title), ...settings]),
      ...(limits.length === 0
        ? []
        : ['Limits, only in a configuration module:', table(['Key', 'Default', 'Meaning'], limits)]),
      ...(additions.length === 0
        ? []
        : ['Only in a configuration module:', table(['Key', 'Shape', 'Meaning'], additions)]),
    ].join('\n\n');
  }).join('\n\n');
}

function sectionOf(key: string): string | undefined {
  const [word = ''] = key.replace(/^limits\./, '').split('.');
  return (SECTIONS.find(({ words }) => words.includes(word)) ?? SECTIONS[0])?.title;
}

function moduleRow(title: string): readonly (readonly string[])[] {
  if (title !== SECTIONS[0]?.title) return [];
  const { flag, env, default: value, description } = moduleOption;
  return [['(the configuration module)', code(flag), code(env), value, description]];
}

function settingRow(key: OptionKey): readonly string[] {
  const option = optionOf(key);
  const env = option.secret ? `${code(option.env)} or ${code(`${option.env}_FILE`)}` : code(option.env);
  return [code(key), code(flagOf(key)), env, defaultCell(option), option.description];
}

function limitRow(key: SettingKey): readonly string[] {
  return [code(key), defaultCell(optionOf(key)), optionOf(key).description];
}

function defaultCell(setting: Setting<unknown>): string {
  const shown = formatDefault(setting);
  return setting.default === undefined || shown === 'none' ? shown : code(shown);
}

function code(text: string): string {
  return `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** Escapes `<file>`, which Markdown reads as an HTML tag outside code. */
function cell(text: string): string {
  const outside = text
    .split('`')
    .map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;') : part));
  return outside.join('`');
}

/** An option with its effective value. */
export interface EffectiveOption {
  readonly key: SettingKey;
  readonly value: unknown;
  /** The origin of the value; undefined for a default. */
  readonly origin: string | undefined;
  readonly secret: boolean;
}

/** All options with their effective values and origins, in the order of the documentation. */
export function effectiveOptions(
  settings: Settings,
  sources: readonly PropertySource[],
): readonly EffectiveOption[] {
  return settingKeys.map((key) => {
    const origins = sources.map((source) => findProperty(source, key)?.origin);
    return {
      key,
      value: settings[key],
      origin: origins.find((origin) => origin !== undefined),
      secret: optionOf(key).secret,
    };
  });
}
