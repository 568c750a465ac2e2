import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { describeKind } from '../../core/quote.ts';
import { entriesOf, isRecord } from '../../core/record.ts';
import { jsonFault } from './json-fault.ts';
import type { ModuleFile } from './module-file.ts';

/** The default export of a configuration module, or the problem in one line. */
export type Imported =
  | { readonly exported: Readonly<Record<string, unknown>> }
  | { readonly problem: string };

/** The file of the stack frame below all frames of a loading module. */
export const importer = import.meta.filename;

/** Imports a `.ts` or `.js` module, or parses a `.json` one. Rejects with whatever the module throws. */
export async function importModule(file: ModuleFile): Promise<Imported> {
  return file.path.endsWith('.json') ? readJson(file) : runModule(file);
}

async function runModule(file: ModuleFile): Promise<Imported> {
  const namespace: Readonly<Record<string, unknown>> = await import(pathToFileURL(file.path).href);
  // A CommonJS module without exports has an empty object as its default.
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
    // The message of JSON.parse may quote a secret.
    const fault = jsonFault(text);
    const before = text.slice(0, fault).split('\n');
    const place = `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    const what = fault === text.length ? 'it ends too early' : 'it is not JSON from here on';
    return { problem: `${file.name} cannot be loaded: ${what} (${file.name}:${place})` };
  }
  if (isRecord(parsed)) return { exported: parsed };
  return { problem: `${file.name} must hold an object, not ${describeKind(parsed)}` };
}
