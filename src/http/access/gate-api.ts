import type { ErrorCode } from '../../core/error-codes.ts';
import type { DoorApi } from '../openapi/api.ts';
import type { ApiGate } from './api-gate.ts';
import { isRequired } from './need.ts';

const CREDENTIALS = [
  'UNAUTHORIZED',
  'LACKS_SCOPE',
  'TOO_MANY_ATTEMPTS',
  'NO_KEYS',
] as const satisfies readonly ErrorCode[];

/** What a gate adds to the description of a REST door. */
export function gateApi({ rules }: ApiGate): Pick<DoorApi, 'security' | 'refusals'> {
  const { required, scopes, takesPasswords, hasRate, hasLoadLimits } = rules;
  const refusals: readonly ErrorCode[] = [
    ...(hasRate ? (['RATE_LIMITED'] as const) : []),
    ...(hasLoadLimits ? (['OVERLOADED'] as const) : []),
  ];
  if (required === 'none') return { refusals };
  return {
    refusals,
    security: {
      schemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        ...(takesPasswords && { basic: { type: 'http', scheme: 'basic' } }),
      },
      needs(_path, method) {
        const need = method === 'get' ? 'read' : 'write';
        if (!isRequired(required, need)) return undefined;
        return { bearer: [scopes[need]], ...(takesPasswords && { basic: [scopes[need]] }) };
      },
      refusals: takesPasswords ? [...CREDENTIALS, 'TOO_MANY_LOGINS'] : CREDENTIALS,
    },
  };
}
