import { prefersHtml as prefersHtmlTo } from '../../http/accept.ts';
import { RESULT_TYPES } from '../media-type.ts';

const resultTypes = Object.values(RESULT_TYPES);

/** Whether an Accept header asks for a page rather than for a GraphQL result, whatever its media type. */
export function prefersHtml(accept: string | undefined): boolean {
  return prefersHtmlTo(accept, resultTypes);
}
