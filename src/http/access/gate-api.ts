import type { ErrorCode } from '../../core/error-codes.ts';
import type { DoorApi } from '../openapi/api.ts';
import type { ApiGate } from './api-gate.ts';
import { isRequired } from './need.ts';

const REFUSALS = ['UNAUTHORIZED', 'LACKS_SCOPE', 'TOO_MANY_ATTEMPTS'] as const satisfies readonly ErrorCode[];

/** How clients authenticate at a REST door behind a gate, as OpenAPI describes it. */
export function gateSecurity({ rules }: ApiGate): NonNullable<DoorApi['security']> {
  const { required, scopes, takesPasswords } = rules;
  const refusals = takesPasswords ? ([...REFUSALS, 'TOO_MANY_LOGINS'] as const) : REFUSALS;
  return {
    schemes: {
      bearer: { type: 'http', scheme: 'bearer' },
      ...(takesPasswords && { basic: { type: 'http', scheme: 'basic' } }),
    },
    needs(_path, method) {
      const need = method === 'get' ? 'read' : 'write';
      if (!isRequired(required, need)) return undefined;
      return { bearer: [scopes[need]], ...(takesPasswords && { basic: [scopes[need]] }) };
    },
    refusals,
  };
}
