import { flagOf, formatDefault, type Group, groups, type Setting } from '../src/config/options/option.ts';
import {
  codeKeys,
  limitKeys,
  moduleOption,
  type OptionKey,
  optionKeys,
  optionOf,
  type SettingKey,
} from '../src/config/options/options.ts';

/** The documentation of the whole tree: Markdown tables by group, under second-level headings. */
export function renderOptions(): string {
  return (Object.keys(groups) as Group[]).map(renderGroup).join('\n\n');
}

function renderGroup(group: Group): string {
  const inGroup = (key: SettingKey) => optionOf(key).group === group;
  const additions = Array.from(codeKeys).filter(([, { group: own }]) => own === group);
  const tables = [
    [
      '',
      ['Key', 'Flag', 'Environment', 'Default', 'Meaning'],
      [...moduleRow(group), ...optionKeys.filter(inGroup).map(settingRow)],
    ],
    [
      'Limits, only in a configuration module:',
      ['Key', 'Default', 'Meaning'],
      limitKeys.filter(inGroup).map(limitRow),
    ],
    [
      'Only in a configuration module:',
      ['Key', 'Shape', 'Meaning'],
      additions.map(([key, { shape, help }]) => [code(key), code(shape), help]),
    ],
  ] as const;
  const shown = tables.filter(([, , rows]) => rows.length > 0);
  return [`## ${groups[group]}`, ...shown.flatMap(([intro, head, rows]) => [intro, table(head, rows)])]
    .filter((block) => block !== '')
    .join('\n\n');
}

function moduleRow(group: Group): readonly (readonly string[])[] {
  if (group !== 'service') return [];
  const { flag, env, default: value, help } = moduleOption;
  return [['(the configuration module)', code(flag), code(env), value, help]];
}

function settingRow(key: OptionKey): readonly string[] {
  const option = optionOf(key);
  const env = option.secret ? `${code(option.env)} or ${code(`${option.env}_FILE`)}` : code(option.env);
  return [code(key), code(flagOf(key)), env, defaultCell(option), option.help];
}

function limitRow(key: SettingKey): readonly string[] {
  return [code(key), defaultCell(optionOf(key)), optionOf(key).help];
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
