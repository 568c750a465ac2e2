import type { ShowDetails } from '../../config/options/health-names.ts';

/** Whether the components and their details are shown to this reader. */
export function detailsShown(showDetails: ShowDetails, authorized: boolean): boolean {
  return showDetails === 'always' || (showDetails === 'when-authorized' && authorized);
}
