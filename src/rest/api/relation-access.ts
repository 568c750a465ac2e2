import { accessApi } from '../../access/guarded.ts';
import type { AccessPolicy } from '../../access/policy.ts';
import type { DoorApi } from '../../http/openapi.ts';
import { hasRules, type Relation } from '../../relations/relation.ts';

/** What callers need for the rows of a relation, and how they are refused. Rules may let in those without credentials. */
export function accessOf(
  relation: Relation,
  policy: AccessPolicy | undefined,
): Pick<DoorApi, 'security' | 'refusals'> {
  const { security, refusals = [] } = policy === undefined ? {} : accessApi(policy, relation.name);
  if (!hasRules(relation)) return policy === undefined ? {} : { refusals, ...(security && { security }) };
  if (relation.rules === undefined)
    return { refusals: [...refusals, 'NOT_ALLOWED'], ...(security && { security }) };
  return { refusals: [...refusals, 'NOT_ALLOWED', 'UNAUTHORIZED', 'TOO_MANY_ATTEMPTS'] };
}

/** The rules of several relations, as far as they concern the refusals of a request to all. */
export function ofAll(relations: readonly Relation[]): Pick<Relation, 'rules' | 'columns'> {
  const columns = relations.flatMap((relation) => relation.columns);
  return { columns, rules: relations.find(({ rules }) => rules !== undefined)?.rules };
}
