import { flagOf, formatDefault } from './options/option.ts';
import { moduleOption, optionKeys, optionOf } from './options/options.ts';
import { codeKeys } from './schema/code.ts';

/** The documentation of all options and code keys, as Markdown tables. */
export function renderMarkdownTable(): string {
  const module = [
    '(the configuration module)',
    code(moduleOption.flag),
    code(moduleOption.env),
    moduleOption.default,
    moduleOption.description,
  ];
  const settings = optionKeys.map((key) => {
    const option = optionOf(key);
    const env = option.secret ? `${code(option.env)} or ${code(`${option.env}_FILE`)}` : code(option.env);
    const given = option.default === undefined || formatDefault(option) === 'none';
    const shown = given ? formatDefault(option) : code(formatDefault(option));
    return [code(key), code(flagOf(key)), env, shown, option.description];
  });
  const additions = codeKeys.map(({ key, shape, description }) => [code(key), code(shape), description]);
  return [
    table(['key', 'flag', 'environment', 'default', 'meaning'], [module, ...settings]),
    'Only in a configuration module:',
    table(['key', 'shape', 'meaning'], additions),
  ].join('\n\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** Markdown reads `<file>` outside of code as an HTML tag. */
function cell(text: string): string {
  const outside = text
    .split('`')
    .map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;') : part));
  return outside.join('`');
}
