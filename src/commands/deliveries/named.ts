import { printable } from '../../core/quote.ts';
import type { DeliveryLog } from '../../inbox/delivery-log.ts';
import { UsageError } from '../argv/usage-error.ts';
import { eventText } from './cells.ts';

/** Maximum number of deliveries that the error for an ambiguous name lists. */
const MAX_LISTED = 10;

/**
 * The id of the delivery that a word names: its id, the beginning of one, or the sender's own id. Undefined when there is
 * none. Rejects with UsageError, which lists the matches, when there are several.
 */
export async function idNamed(log: DeliveryLog, word: string): Promise<string | undefined> {
  const ids = await log.resolve(word, MAX_LISTED + 1);
  if (ids.length < 2) return ids[0];
  const listed = await Promise.all(ids.slice(0, MAX_LISTED).map((id) => log.find(id)));
  const lines = listed.flatMap((found) =>
    found === undefined
      ? []
      : [
          `  ${found.id}  ${new Date(found.receivedAt).toISOString()}  ${printable(eventText(found) ?? '')}`.trimEnd(),
        ],
  );
  const more = ids.length > MAX_LISTED ? ['  and more'] : [];
  throw new UsageError([`"${printable(word)}" names more than one delivery:`, ...lines, ...more]);
}
