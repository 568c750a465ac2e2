import { firstTabs, newTab } from './first-tabs.ts';
import type { Link } from './link.ts';

/** The tabs of a first visit, and the contents of a tab that the user opens. */
interface Examples {
  readonly tabs: readonly { readonly query: string; readonly variables?: string }[];
  readonly newTab: string;
}

/** The examples that the service has put into the page, or our own. */
export function readExamples(data: string | undefined): Examples {
  return data === undefined ? { tabs: firstTabs, newTab } : JSON.parse(data);
}

/**
 * The initial properties of GraphiQL: the tabs of the last visit, or ours on the first one. A link gets its
 * own tab, which is shown but not run. Its headers are empty, so that the user's saved headers are not sent
 * with an operation from someone else.
 */
export function startWith(link: Link | undefined, { tabs, newTab }: Examples): object {
  const always = { defaultQuery: newTab };
  if (link === undefined) return { ...always, defaultTabs: tabs };
  const { query, variables } = link;
  return {
    ...always,
    defaultTabs: [{ query, variables }, ...tabs],
    initialQuery: query,
    initialVariables: variables,
    initialHeaders: '',
  };
}
