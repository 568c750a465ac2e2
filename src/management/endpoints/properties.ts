import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import type { EffectiveOption } from '../../config/options-table.ts';
import { describeEnvironment, describeProperty, type Environment } from '../environment.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply, jsonTextReply, NOT_FOUND } from '../management-errors.ts';
import type { ShowValue } from '../masking.ts';

/** The options of one section, with their values and origins. */
interface Bean {
  readonly prefix: string;
  readonly properties: Record<string, unknown>;
  readonly inputs: Record<string, { readonly value: unknown; readonly origin: string | undefined }>;
}

/** The section of options whose names have none. */
const COMMON = 'common';

/** The configprops endpoint: every option with its value, by door. */
export function configPropsEndpoint(
  application: string,
  options: readonly EffectiveOption[],
  show: ShowValue,
): ManagementEndpoint {
  const beans = beansOf(options, show);
  const bodyOf = (shown: ReadonlyMap<string, Bean>) =>
    JSON.stringify({ contexts: { [application]: { beans: Object.fromEntries(shown) } } });
  const whole = bodyOf(beans);

  function part(ctx: RequestContext): Reply {
    const { param: prefix } = ctx;
    const found = Array.from(beans).filter(([, bean]) => prefix !== '' && bean.prefix.startsWith(prefix));
    if (found.length === 0) throw NOT_FOUND;
    return jsonTextReply(ctx, bodyOf(new Map(found)));
  }

  return {
    id: 'configprops',
    about: 'Every option with its value, and where it was set.',
    routes: () => ({
      '/configprops': { get: (ctx) => jsonTextReply(ctx, whole) },
      '/configprops/{prefix}': { get: part },
    }),
  };
}

function beansOf(options: readonly EffectiveOption[], show: ShowValue): ReadonlyMap<string, Bean> {
  const beans = new Map<string, Bean>();
  for (const { key, origin, ...property } of options) {
    const dot = key.indexOf('.');
    const section = dot === -1 ? COMMON : key.slice(0, dot);
    const name = key.slice(dot + 1);
    const bean = beans.get(section) ?? { prefix: section, properties: {}, inputs: {} };
    const value = property.value === undefined ? undefined : show(key, property);
    bean.properties[name] = value;
    if (value !== undefined) bean.inputs[name] = { value, origin };
    beans.set(section, bean);
  }
  return beans;
}

/**
 * The env endpoint (CONTRACT.md#management-bodies). It describes the environment once, because that never
 * changes while the process runs.
 */
export function envEndpoint(environment: Environment, show: ShowValue): ManagementEndpoint {
  const body = JSON.stringify(describeEnvironment(environment, show));

  /** The properties whose names contain the pattern, in any case; all properties without one. */
  function bodyFor(pattern: unknown): string {
    if (pattern === undefined || pattern === '') return body;
    if (typeof pattern !== 'string') throw new HttpProblem(400, 'TWO_PATTERNS', 'Give one pattern');
    const part = pattern.toLowerCase();
    const contains = (name: string) => name.toLowerCase().includes(part);
    return JSON.stringify(describeEnvironment(environment, show, contains));
  }

  return {
    id: 'env',
    about: 'The source of every setting, strongest source first.',
    routes: () => ({
      '/env': { get: (ctx) => jsonTextReply(ctx, bodyFor(ctx.query.pattern)) },
      '/env/{toMatch}': {
        get(ctx) {
          const found = describeProperty(environment, ctx.param, show);
          if (found === undefined) throw NOT_FOUND;
          return jsonReply(ctx, found);
        },
      },
    }),
  };
}
