import type { SearchLevel } from '../../users/search-level.ts';
import type { OrderField, UserFilter, UserSelection } from '../../users/user-list.ts';

/**
 * How the users of a selection are found. Either one index gives them in their order, so that a page costs the same
 * wherever it is; or the best of the filters finds at most `MAX_MATCHES` users, which are then looked at one by one.
 */
export type ListPlan =
  | { readonly kind: 'walk'; readonly filter: UserFilter | undefined; readonly order: readonly OrderField[] }
  /** Without a driver all users are looked at. */
  | {
      readonly kind: 'narrow';
      readonly driver: UserFilter | undefined;
      readonly others: readonly UserFilter[];
    };

/** Maximum number of users that are sorted or filtered for one page: a few milliseconds of work. */
export const MAX_MATCHES = 10_000;
/** The length of the parts of texts that are indexed, in characters. */
const PART = 3;

/** Plans a selection for users that are indexed for `search`. */
export function planList({ filters, order }: UserSelection, search: SearchLevel): ListPlan {
  const [only] = filters;
  const walked = filters.length > 1 ? undefined : walkedOrder(only, order, search);
  if (walked !== undefined) return { kind: 'walk', filter: only, order: walked };
  const [driver] = filters
    .filter((filter) => isIndexed(filter, search))
    .toSorted((a, b) => rank(a) - rank(b));
  return { kind: 'narrow', driver, others: filters.filter((filter) => filter !== driver) };
}

/** The order in which an index gives the matches of a filter, if it is the one that is asked for. */
function walkedOrder(
  filter: UserFilter | undefined,
  order: readonly OrderField[],
  search: SearchLevel,
): readonly OrderField[] | undefined {
  const [first] = order;
  if (filter === undefined) return first?.field === 'id' || search !== 'none' ? order : undefined;
  const { field, match } = filter;
  if (field === 'id' || !isIndexed(filter, search)) return undefined;
  if (match === 'contains') return first?.field === 'id' ? order : undefined;
  if (match === 'prefix') return first?.field === field ? order : undefined;
  if (filter.values.length > 1) return undefined;
  // All matches are equal in the field.
  const rest = order.filter((each) => each.field !== field);
  return rest[0]?.field === 'id' ? rest : undefined;
}

function isIndexed(filter: UserFilter, search: SearchLevel): boolean {
  if (filter.field === 'id') return true;
  if (filter.match === 'contains') return search === 'text' && [...filter.text].length >= PART;
  return search !== 'none';
}

/** The filters that find the fewest users come first. */
function rank(filter: UserFilter): number {
  const { field, match } = filter;
  if (field === 'id') return 0;
  if (match === 'exact') return field === 'email' ? 1 : 2;
  if (match === 'contains') return 3;
  return field === 'email' ? 4 : 5;
}
