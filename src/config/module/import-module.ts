import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { describeKind } from '../../core/quote.ts';
import { entriesOf, isRecord } from '../../core/record.ts';
import { jsonFault } from './json-fault.ts';
import type { ModuleFile } from './module-file.ts';

/** What a configuration module exports, or one line about why that cannot be had. */
export type Imported =
  | { readonly exported: Readonly<Record<string, unknown>> }
  | { readonly problem: string };

/** The file that stands in the stack below everything that a module does while it is loaded. */
export const importer = import.meta.filename;

/** Loads a configuration module: runs a `.ts` or `.js` one, reads a `.json` one. Rejects with what running it threw. */
export async function importModule(file: ModuleFile): Promise<Imported> {
  return file.path.endsWith('.json') ? readJson(file) : runModule(file);
}

async function runModule(file: ModuleFile): Promise<Imported> {
  const namespace: Readonly<Record<string, unknown>> = await import(pathToFileURL(file.path).href);
  // A CommonJS module that sets nothing exports an empty object all the same.
  const nothing = isRecord(namespace.default) && entriesOf(namespace.default).length === 0;
  if (!Object.hasOwn(namespace, 'default') || (Object.hasOwn(namespace, 'module.exports') && nothing)) {
    return { problem: `${file.name} has no default export; write: export default defineConfig({ ... })` };
  }
  const exported: unknown = await namespace.default;
  if (isRecord(exported)) return { exported };
  const given = describeKind(exported);
  return {
    problem: `the default export of ${file.name} must be an object or a promise of one, not ${given}`,
  };
}

function readJson(file: ModuleFile): Imported {
  const text = readFileSync(file.path, 'utf8').replace(/^\uFEFF/, '');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The message of JSON.parse may show the text, with a secret in it.
    const fault = jsonFault(text);
    const before = text.slice(0, fault).split('\n');
    const place = `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    const what = fault === text.length ? 'it ends too early' : 'it is not JSON from here on';
    return { problem: `${file.name} cannot be loaded: ${what} (${file.name}:${place})` };
  }
  if (isRecord(parsed)) return { exported: parsed };
  return { problem: `${file.name} must hold an object, not ${describeKind(parsed)}` };
}
