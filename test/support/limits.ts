import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { moduleFiles } from '../../src/config/module.ts';
import { limitKeys } from '../../src/config/options/options.ts';

const MODULE = 'limits.config.ts';

/** Limits that tests name like variables: GRAPHQL_MAX_TOKENS is limits.graphql.maxTokens. */
const LIMITS: ReadonlyMap<string, readonly string[]> = new Map(
  limitKeys.map((key) => {
    const [, ...path] = key.split('.');
    return [path.join('_').replace(/[A-Z]/g, '_$&').toUpperCase(), path];
  }),
);

/**
 * The variables among settings by their names. If there are limits among them, which have none, writes a module with
 * them into `folder`, which the service sees as `seen`; it adds them to the module that is there, and the variables name it.
 */
export function withLimits<V extends string | undefined>(
  named: Readonly<Record<string, V>>,
  folder: string,
  seen = folder,
): Record<string, V | string> {
  const limits: Record<string, unknown> = {};
  const env: Record<string, V | string> = {};
  for (const [name, value] of Object.entries(named)) {
    const path = LIMITS.get(name);
    if (path === undefined) env[name] = value;
    else nest(limits, path, Number(value));
  }
  if (Object.keys(limits).length === 0) return env;
  const [own] = moduleFiles(folder);
  const attributes = own?.endsWith('.json') ? " with { type: 'json' }" : '';
  const head = own === undefined ? 'const own = {};' : `import own from './${own}'${attributes};`;
  const text = `${head}\nexport default { ...own, limits: ${JSON.stringify(limits)} };\n`;
  writeFileSync(join(folder, MODULE), text);
  return { ...env, CONFIG: join(seen, MODULE) };
}

function nest(
  section: Record<string, unknown>,
  [name = '', ...inner]: readonly string[],
  value: number,
): void {
  if (inner.length === 0) {
    section[name] = value;
    return;
  }
  const next = (section[name] ?? {}) as Record<string, unknown>;
  section[name] = next;
  nest(next, inner, value);
}
