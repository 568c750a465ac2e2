import { firstTabs } from './first-tabs.ts';
import type { Link } from './link.ts';

/**
 * The properties by which GraphiQL starts: with the tabs of the last visit, at first with ours. A link gets a tab of its
 * own, which is shown and never run by itself. Its headers are empty, so that headers that a user has saved do not go
 * with an operation that somebody else wrote.
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
