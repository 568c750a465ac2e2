import type { Logger } from 'pino';
import type { LineTap } from './line-tap.ts';
import { isoTimestamp } from './log-time.ts';

/** Fields that few entries differ in. */
type Fixed = Readonly<Record<string, string | null>>;

/** Logs an entry at level info; `id` is a text that JSON writes as it is, and `key` tells different `fixed` apart. */
export type RepeatedEntry = (id: string, key: string, fixed: Fixed) => void;

interface Parts {
  readonly beforeTime: string;
  readonly beforeId: string;
  readonly afterId: string;
  readonly secretTexts: readonly string[];
}

/** Whose `fixed` is remembered; a sender can make up any number of them. */
const MAX_KNOWN = 100;
const TIME = /,"time":"[^"]*"/;

/**
 * Makes what logs one message again and again, with the id under `field` and a few other fields: the log makes each
 * line once, and from then on its parts are put together with another time and id. That costs a tenth of an entry.
 */
export function repeatedEntry(
  log: Pick<Logger, 'info' | 'isLevelEnabled'>,
  tap: LineTap,
  field: string,
  message: string,
): RepeatedEntry {
  const time = isoTimestamp();
  const known = new Map<string, Parts>();
  return (id, key, fixed) => {
    if (!log.isLevelEnabled('info')) return;
    const parts = known.get(key);
    if (parts !== undefined && parts.secretTexts === tap.secretTexts) {
      tap.write(parts.beforeTime + time() + parts.beforeId + id + parts.afterId);
      return;
    }
    log.info({ [field]: id, ...fixed }, message);
    const made = partsOf(tap, `"${field}":"${id}"`, id);
    if (made !== undefined && (parts !== undefined || known.size < MAX_KNOWN)) known.set(key, made);
  };
}

/** Undefined for a line that is not as expected, such as one in which the id was taken for a secret. */
function partsOf({ lastLine, secretTexts }: LineTap, pair: string, id: string): Parts | undefined {
  const time = TIME.exec(lastLine);
  const at = lastLine.indexOf(pair);
  if (time === null || at < time.index) return undefined;
  const idAt = at + pair.length - 1 - id.length;
  return {
    beforeTime: lastLine.slice(0, time.index),
    beforeId: lastLine.slice(time.index + time[0].length, idAt),
    afterId: lastLine.slice(idAt + id.length),
    secretTexts,
  };
}
