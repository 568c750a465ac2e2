import { shownCount, useFailing } from '../data/deliveries.ts';
import { useEndpoints } from '../data/endpoints.ts';
import { formatMoment } from '../data/format.ts';
import { linkTo } from '../data/route.ts';
import { Icon } from '../parts/icon.tsx';
import { Status } from '../parts/parts.tsx';

/** Number of targets that are listed. */
const SHOWN = 6;

/**
 * What somebody has to act on: dead deliveries, endpoints that were disabled, and the handlers and forward addresses that fail.
 * Nothing if all is well.
 */
export function Failures() {
  const { dead, targets } = useFailing().value ?? { dead: 0, targets: [] };
  const disabled = useEndpoints().value?.counts.disabled ?? 0;
  if (dead === 0 && disabled === 0 && targets.length === 0) return null;
  const others = targets.length - SHOWN;
  return (
    <section className={`failing card ${dead + disabled > 0 ? 'bad' : 'warn'}`} aria-label="What fails">
      {dead > 0 && (
        <p className="failing-head">
          <Icon name="alert" />
          <a href={linkTo('deliveries', '', { status: 'dead' })}>
            <strong>
              {shownCount(dead)} dead {dead === 1 ? 'delivery' : 'deliveries'}
            </strong>
          </a>
          <span>Nothing retries them: mend the cause, then replay or discard them.</span>
        </p>
      )}
      {disabled > 0 && (
        <p className="failing-head">
          <Icon name="alert" />
          <a href={linkTo('endpoints', '', { state: 'disabled' })}>
            <strong>
              {shownCount(disabled)} {disabled === 1 ? 'endpoint was' : 'endpoints were'} disabled
            </strong>
          </a>
          <span>
            {disabled === 1
              ? 'It failed for days or answered 410, and gets no events until it is enabled again.'
              : 'They failed for days or answered 410, and get no events until they are enabled again.'}
          </span>
        </p>
      )}
      {dead === 0 && targets.length > 0 && (
        <p className="failing-head">
          <Icon name="alert" />
          <strong>{targets.length === 1 ? '1 handler fails' : `${targets.length} handlers fail`}</strong>
        </p>
      )}
      {targets.length > 0 && (
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
      )}
      {others > 0 && <p className="quiet">{others} more fail.</p>}
    </section>
  );
}
