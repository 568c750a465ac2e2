import { shownCount, useFailing } from '../data/deliveries.ts';
import { formatMoment } from '../data/format.ts';
import { linkTo } from '../data/route.ts';
import { Icon } from '../parts/icon.tsx';
import { Status } from '../parts/parts.tsx';

/** Number of targets that are listed. */
const SHOWN = 6;

/** What somebody has to act on: dead deliveries, and the handlers and forward addresses that fail. Nothing if all is well. */
export function Failures() {
  const { value } = useFailing();
  if (value === undefined || (value.dead === 0 && value.targets.length === 0)) return null;
  const { dead, targets } = value;
  const others = targets.length - SHOWN;
  return (
    <section className={`failing card ${dead > 0 ? 'bad' : 'warn'}`} aria-label="What fails">
      <p className="failing-head">
        <Icon name="alert" />
        {dead > 0 ? (
          <>
            <a href={linkTo('deliveries', '', { status: 'dead' })}>
              <strong>
                {shownCount(dead)} dead {dead === 1 ? 'delivery' : 'deliveries'}
              </strong>
            </a>
            <span>Nothing retries them: mend the cause, then replay or discard them.</span>
          </>
        ) : (
          <strong>{targets.length === 1 ? '1 handler fails' : `${targets.length} handlers fail`}</strong>
        )}
      </p>
      <ul>
        {targets.slice(0, SHOWN).map(({ target, dead: died, retrying, lastDeadAt, error }) => (
          <li key={target}>
            <code className="break">{target.replace(/^handler:/, '')}</code>
            {died > 0 && (
              <a href={linkTo('deliveries', '', { status: 'dead', target })}>
                <Status tone="bad">{shownCount(died)} dead</Status>
              </a>
            )}
            {retrying > 0 && (
              <a href={linkTo('deliveries', '', { status: 'pending', target })}>
                <Status tone="warn">{shownCount(retrying)} retrying</Status>
              </a>
            )}
            {error && <span className="failing-error">{error}</span>}
            {lastDeadAt !== null && <time>last {formatMoment(lastDeadAt)}</time>}
          </li>
        ))}
      </ul>
      {others > 0 && <p className="quiet">{others} more fail.</p>}
    </section>
  );
}
