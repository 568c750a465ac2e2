import { firstTabs } from './first-tabs.ts';
import type { Link } from './link.ts';

/**
 * The initial properties of GraphiQL: the tabs of the last visit, or ours on the first one. A link gets its
 * own tab, which is shown but not run. Its headers are empty, so that the user's saved headers are not sent
 * with an operation from someone else.
 */
export function startWith(link: Link | undefined): object {
  if (link === undefined) return { defaultTabs: firstTabs };
  const { query, variables } = link;
  return {
    defaultTabs: [{ query, variables }, ...firstTabs],
    initialQuery: query,
    initialVariables: variables,
    initialHeaders: '',
  };
}
