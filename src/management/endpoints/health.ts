import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { HealthResult } from '../../observability/health/health.ts';
import { cachedHealthReply, healthReply } from '../health/health-reply.ts';
import type { HealthTarget, HealthView } from '../health/view.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';

/** Only authorised requests get past the guard; without users every request is authorised. */
function detailsShown({ showDetails }: Pick<HealthTarget, 'showDetails'>): boolean {
  return showDetails !== 'never';
}

/** The health endpoint: the whole, its groups, and each of their components. */
export function healthEndpoint(view: HealthView): ManagementEndpoint {
  const { registry, secrets, whole } = view;
  const checkWhole = registry.group(whole.members);
  const replyWhole = cachedHealthReply({
    shown: detailsShown(whole),
    groups: [...view.groups.keys()],
    secrets,
  });

  /** The target of a path below /health; undefined when it is unknown or not to be shown. */
  function targetOf(path: string): HealthTarget | undefined {
    const target = view.resolve(path.split('/'));
    if (target === undefined || target.path.length === 0) return target;
    return detailsShown(target) ? target : undefined;
  }

  function part({ param, headers }: Exchange): MaybePromise<Reply> {
    const target = targetOf(param);
    if (target === undefined) throw NOT_FOUND;
    const { members, path } = target;
    return whenReady(registry.check(members), (report) => {
      const found = componentAt(report, path);
      if (found === undefined) throw NOT_FOUND;
      return healthReply(found, headers.accept, { shown: detailsShown(target), secrets });
    });
  }

  return {
    id: 'health',
    about: 'Whether everything that this service needs is well.',
    routes: () => ({
      '/health': {
        get: ({ headers }) => whenReady(checkWhole(), (report) => replyWhole(report, headers.accept)),
      },
      '/health/{*path}': { get: part, exists: (path) => targetOf(path) !== undefined },
    }),
  };
}

function componentAt(whole: HealthResult, path: readonly string[]): HealthResult | undefined {
  const part = (at: HealthResult | undefined, name: string) =>
    new Map(Object.entries(at?.components ?? {})).get(name);
  return path.reduce(part, whole);
}
