import { quote } from '../../core/quote.ts';
import { isRecord } from '../../core/record.ts';
import { comparableEndpointId, endpointIdPattern, takenEndpoints } from '../options/endpoint-id.ts';
import { type CustomEndpoint, endpointSchema } from './custom-endpoint.ts';
import { type Given, itemsOf } from './given.ts';
import { readObject } from './read-object.ts';

/** Reads `management.endpoints`: an array of custom endpoints. */
export function readEndpoints(given: Given, problems: string[]): readonly CustomEndpoint[] {
  const items = itemsOf(given, problems);
  const endpoints = items.flatMap((item) => readObject(endpointSchema, item, problems) ?? []);
  problems.push(...sharedIds(items));
  // The schema checks for an operation, which its type cannot express.
  return endpoints as readonly CustomEndpoint[];
}

/** One line for each id that another endpoint has already. */
function sharedIds(items: readonly Given[]): readonly string[] {
  const taken = new Map(takenEndpoints.map((id) => [comparableEndpointId(id), `the built-in ${id}`]));
  return items.flatMap(({ value, path }) => {
    const id = isRecord(value) && Object.hasOwn(value, 'id') ? value.id : undefined;
    if (typeof id !== 'string' || !endpointIdPattern.test(id)) return [];
    const comparable = comparableEndpointId(id);
    const other = taken.get(comparable);
    if (other !== undefined) {
      return [`${path}.id ${quote(id)} names the same endpoint as ${other}; rename it`];
    }
    taken.set(comparable, `${path}.id`);
    return [];
  });
}
