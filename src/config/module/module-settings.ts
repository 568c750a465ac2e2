import { describeKind } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import { isOptionKey, optionKeys, optionOf } from '../options/options.ts';
import { parseValue } from '../options/parse.ts';
import { type CodeKey, codeKeys, dataKeys } from '../schema/code.ts';
import { type Reading, startReading, take } from '../sources/reading.ts';

const isCodeKey = (key: string): key is CodeKey => codeKeys.some((code) => code.key === key);
const allKeys: readonly string[] = [...optionKeys, ...codeKeys.map((code) => code.key)];

/** The content of a configuration module. */
export interface ModuleReading extends Reading {
  /** The values of code keys, not validated yet. */
  readonly code: ReadonlyMap<CodeKey, unknown>;
}

/** Reads the settings of a configuration module. `name` is its name in messages. */
export function readModuleSettings(exported: Readonly<Record<string, unknown>>, name: string): ModuleReading {
  const reading = startReading();
  const code = new Map<CodeKey, unknown>();

  const visit = (record: Readonly<Record<string, unknown>>, section: string | undefined): void => {
    for (const [part, value] of entriesOf(record)) {
      const key = section === undefined ? part : `${section}.${part}`;
      const place = { name: `${name}: ${key}`, drop: 'leave it out' };
      // Sections are nested: a key with a dot sets no option.
      if (part.includes('.')) {
        reading.problems.push(
          `${unknownKey(name, key, [])}; write sections as objects: { rest: { port: 8000 } }`,
        );
      } else if (isOptionKey(key)) {
        take(reading, key, place.name, parseValue(optionOf(key), place, value));
      } else if (isCodeKey(key) && name.endsWith('.json') && !dataKeys.has(key)) {
        reading.problems.push(`${place.name} needs a .ts or .js module; .json holds settings only`);
      } else if (isCodeKey(key)) {
        code.set(key, value);
      } else if (!isSection(key)) {
        reading.problems.push(unknownKey(name, key, section === undefined ? topKeys() : allKeys));
      } else if (isRecord(value)) {
        visit(value, key);
      } else {
        // A text in place of a section may be a secret.
        reading.problems.push(`${place.name} must be an object, not ${describeKind(value)}`);
      }
    }
  };
  visit(exported, undefined);
  return { ...reading, code };
}

function topKeys(): readonly string[] {
  return [...new Set(allKeys.map((key) => key.split('.', 1)[0] ?? key))];
}

function isSection(key: string): boolean {
  return allKeys.some((known) => known.startsWith(`${key}.`));
}
