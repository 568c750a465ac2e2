import type { EffectiveOption } from '../../config/effective-options.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { ShowValue } from '../access/masking.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { jsonTextReply } from '../replies.ts';

/** The options of one section, with their values and where each comes from. */
interface Bean {
  readonly prefix: string;
  readonly properties: Record<string, unknown>;
  readonly inputs: Record<string, { readonly value: unknown; readonly origin: string | undefined }>;
}

/** The section of options without one. */
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

  function part(exchange: Exchange): Reply {
    const { param: prefix } = exchange;
    const found = Array.from(beans).filter(([, bean]) => prefix !== '' && bean.prefix.startsWith(prefix));
    if (found.length === 0) throw NOT_FOUND;
    return jsonTextReply(exchange, bodyOf(new Map(found)));
  }

  return {
    id: 'configprops',
    about: 'Every option with its value, and where it was set.',
    routes: () => ({
      '/configprops': { get: (exchange) => jsonTextReply(exchange, whole) },
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
