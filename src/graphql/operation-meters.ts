import type { OperationMeters, OperationOutcome } from '@portico/graphql-plans';
import type { Metrics } from '../telemetry/metrics.ts';

/** The meters of the GraphQL door. */
export function operationMeters(metrics: Metrics): OperationMeters {
  const timer = metrics.timer('graphql.operations', {
    description:
      'Operations that ran, by name, type and outcome (success, error, or abandoned by their clients)',
    tags: ['name', 'type', 'outcome'],
  });
  const lookups = metrics.counter('graphql.documents', {
    description: 'Documents looked up: remembered (hit), read anew (miss) or refused',
    tags: ['result'],
  });
  const byResult = {
    hit: lookups.with('result', 'hit'),
    miss: lookups.with('result', 'miss'),
    refused: lookups.with('result', 'refused'),
  };
  return {
    operation({ name, operation }) {
      const seriesOf = (outcome: OperationOutcome) =>
        timer.with('name', name?.value ?? 'anonymous', 'type', operation, 'outcome', outcome);
      const series: Partial<Record<OperationOutcome, ReturnType<typeof seriesOf>>> = {};
      return (began, outcome) => {
        const seconds = (performance.now() - began) / 1_000;
        series[outcome] ??= seriesOf(outcome);
        series[outcome].record(seconds);
      };
    },
    lookup: (result) => byResult[result].increment(),
  };
}
