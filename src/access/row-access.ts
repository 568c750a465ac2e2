import { type Endpoint, HttpProblem, type KnownCaller, type RequestContext } from '@portico/transport';
import { type Operation, USERS } from '../relations/relation.ts';
import type { Relations } from '../relations/rows/conditions.ts';
import { isNone } from '../relations/rules/rule-trees.ts';
import { RowRules } from '../relations/rules/views.ts';
import type { AccessPolicy } from './policy.ts';

/** What the rules of a declaration let the callers of a door do. */
export interface RowAccess {
  /** Undefined if no relation has rules. */
  readonly rules: RowRules | undefined;
  readonly policy: AccessPolicy | undefined;
}

/** What callers may do with rows; undefined if no relation has rules. Without its own, scopes decide. */
export function rulesOf(relations: Relations, policy: AccessPolicy | undefined): RowRules | undefined {
  return RowRules.of(relations, (caller, need, relation) => {
    const known = { caller: caller as KnownCaller | undefined };
    return policy?.allows(known, need, relation === USERS ? undefined : relation) ?? true;
  });
}

/** What the caller of a request may do; undefined without rules. */
export function viewOf({ rules }: Pick<RowAccess, 'rules'>, { caller }: Pick<RequestContext, 'caller'>) {
  return rules?.viewOf(caller);
}

/**
 * Refuses a request to a relation unless its caller may do one of the operations, at least with some rows. Throws
 * HttpProblem.
 */
export function requireAny(
  { rules, policy }: RowAccess,
  ctx: RequestContext,
  relation: string,
  operations: readonly Operation[],
): void {
  if (rules?.governs(relation) !== true) return;
  const own = rules.viewOf(ctx.caller).of({ name: relation });
  if (!operations.every((operation) => isNone(own[operation]))) return;
  const message = `The rules of ${relation} do not let this caller ${operations.join(' or ')} its rows`;
  const refusal = new HttpProblem(403, 'NOT_ALLOWED', message);
  throw policy?.refusalOf(ctx, refusal) ?? refusal;
}

/** An endpoint of a relation with rules, which judge its callers before a body is read. */
export function ruledEndpoint(
  endpoint: Endpoint,
  access: RowAccess,
  relation: string,
  operations: readonly Operation[],
): Endpoint {
  if (access.rules?.governs(relation) !== true) return endpoint;
  const { authorize } = endpoint;
  return {
    ...endpoint,
    authorize(ctx, bodyLength) {
      requireAny(access, ctx, relation, operations);
      return authorize?.(ctx, bodyLength);
    },
  };
}

/** Identifies the caller of a request: by rules where a relation has some, else by scopes. */
export function enter(
  { rules }: Pick<RowAccess, 'rules'>,
  policy: AccessPolicy,
  ctx: RequestContext,
  need: 'read' | 'write',
  relation: string,
) {
  if (rules?.governs(relation) === true) return policy.identify(ctx);
  return policy.authorize(ctx, need, relation === USERS ? undefined : relation);
}
