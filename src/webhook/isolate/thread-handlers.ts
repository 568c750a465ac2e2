import { basename } from 'node:path';
import { importModule } from '../../config/module/import-module.ts';
import { readModuleSettings } from '../../config/module/module-settings.ts';
import { type HandlerSpec, readHandlers } from '../../config/schema/module-handlers.ts';

/** The handlers of a configuration module, which this thread imports: a function cannot be sent to it. */
export async function importHandlers(file: string): Promise<ReadonlyMap<string, HandlerSpec>> {
  const name = basename(file);
  const imported = await importModule({ path: file, name });
  if ('problem' in imported) throw new Error(imported.problem);
  const { code } = readModuleSettings(imported.exported, name);
  const problems: string[] = [];
  const handlers = readHandlers({ value: code.get('webhook.handlers'), path: name }, problems);
  if (problems.length > 0) throw new Error(problems.join('; '));
  return handlers;
}
