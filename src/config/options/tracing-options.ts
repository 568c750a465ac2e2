import { count } from './option.ts';

/** The options of traces. */
export const tracingOptions = {
  'tracing.oneIn': count({
    env: 'TRACING_ONE_IN',
    default: 1,
    min: 1,
    description:
      'Where an SDK of OpenTelemetry is registered: of what comes without a trace, one in so many is recorded as spans.',
  }),
} as const;
