import { accessLevels, endpointAccessPattern } from './access.ts';
import { choice, list, optionalChoice } from './option.ts';

/** The options that limit access to the exposed management endpoints. */
export const accessOptions = {
  'management.access': optionalChoice({
    env: 'MANAGEMENT_ACCESS',
    unset:
      'none for heapdump, cpuprofile and shutdown, read-only for deliveries, unrestricted for all others',
    choices: accessLevels,
    description:
      'Access to the exposed endpoints that management.endpointAccess does not name (none, read-only, unrestricted).',
  }),
  'management.endpointAccess': list({
    env: 'MANAGEMENT_ENDPOINT_ACCESS',
    default: [],
    expected: 'a list like loggers=read-only,shutdown=unrestricted with none, read-only or unrestricted',
    pattern: endpointAccessPattern,
    description: 'Access to single endpoints, such as loggers=read-only,shutdown=unrestricted.',
  }),
  'management.maxAccess': choice({
    env: 'MANAGEMENT_MAX_ACCESS',
    default: 'unrestricted',
    choices: accessLevels,
    description: 'Upper bound on access, for all endpoints (none, read-only, unrestricted).',
  }),
} as const;
