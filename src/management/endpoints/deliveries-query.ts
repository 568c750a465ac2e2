import { HttpProblem } from '@portico/transport';
import { didYouMean } from '../../core/text.ts';
import { FILTER_FIELDS, readCount, readFilter } from '../../inbox/operations.ts';

const FIELDS = [...FILTER_FIELDS, 'limit', 'before'] as const;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

/** Reads the query of a list of deliveries. Throws an HttpProblem of status 400 that names all that is wrong. */
export function readDeliveriesQuery(query: Readonly<Record<string, unknown>>) {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (!FIELDS.some((field) => field === name)) {
      problems.push(
        `There is no such parameter${didYouMean(name, FIELDS) || `; there are ${FIELDS.join(', ')}`}`,
      );
    } else if (typeof value !== 'string') problems.push(`${name} is given more than once`);
  }
  const texts = {
    text: (field: (typeof FIELDS)[number]) => {
      const value = query[field];
      return typeof value === 'string' ? value : undefined;
    },
    name: (field: string) => field,
    problems,
  };
  const read = {
    filter: readFilter(texts, Date.now()),
    limit: readCount(texts, 'limit', DEFAULT_LIMIT, MAX_LIMIT),
    before: readCount(texts, 'before', undefined),
  };
  if (problems.length > 0) throw new HttpProblem(400, 'DELIVERY_QUERY', problems.join('; '));
  return read;
}
