import * as v from 'valibot';
import { isRecord, parsePointer, unknownKey } from '../../core/json.ts';
import { describeValue } from '../../core/text.ts';
import {
  type ColumnRules,
  type Grant,
  OPERATIONS,
  type Relation,
  type RelationRules,
  type Rule,
} from '../../relations/relation.ts';
import { RuleTreeReader } from '../../relations/rules/rule-trees.ts';
import { SCOPE } from '../options/access.ts';
import { type Given, pathTo } from './fields.ts';

const RULE = 'must be "anyone", "nobody", { scope }, { where }, or an array of these';

const wordSchema = v.picklist(['anyone', 'nobody'], RULE);
const scopeSchema = v.strictObject({ scope: v.pipe(v.string(RULE), v.regex(SCOPE)) }, RULE);
const whereSchema = v.strictObject({ where: v.record(v.string(), v.unknown()) }, RULE);
const grantSchema = v.union([wordSchema, scopeSchema, whereSchema], RULE);

/** A rule as data. */
export const ruleField = v.union([grantSchema, v.array(grantSchema, RULE)], RULE);

/** The rules of a relation, for the JSON Schema of portico.config.json. */
export const rulesSchema = v.object(
  Object.fromEntries(OPERATIONS.map((operation) => [operation, v.optional(ruleField)])),
);

const CLAIM = 'must be { caller } with a JSON pointer, such as { caller: "/sub" }';

/** A claim as data. */
export const claimField = v.strictObject(
  {
    caller: v.pipe(
      v.string(CLAIM),
      v.check((text) => text.startsWith('/') && parsePointer(text) !== undefined, CLAIM),
    ),
  },
  CLAIM,
);

type RuleData = v.InferOutput<typeof ruleField>;

/** Reads the rules of a relation; an operation that they do not name is refused. Undefined without rules. */
export function readRules({ value, path }: Given, problems: string[]): RelationRules | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) {
    problems.push(`${path} must be an object of rules: ${OPERATIONS.join(', ')}`);
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (!OPERATIONS.some((each) => each === key)) problems.push(unknownKey(path, key, OPERATIONS));
  }
  const rules = OPERATIONS.map((operation) => {
    const given = value[operation];
    return [operation, readRule({ value: given, path: pathTo(path, operation) }, problems)] as const;
  });
  return Object.fromEntries(rules) as RelationRules;
}

function readRule({ value, path }: Given, problems: string[]): Rule {
  if (value === undefined) return [];
  const parsed = v.safeParse(ruleField, value);
  if (parsed.success) return grantsOf(parsed.output);
  const given = typeof value === 'string' ? ` ${describeValue(value)}` : '';
  problems.push(`${path}${given} ${RULE}`);
  return [];
}

function grantsOf(data: RuleData): Rule {
  return [data].flat().filter((each): each is Grant => each !== 'nobody');
}

/** The data of a column about its rules. */
interface ColumnData {
  readonly read?: RuleData | undefined;
  readonly write?: RuleData | undefined;
  readonly readonly?: boolean | undefined;
  readonly immutable?: boolean | undefined;
  readonly set?: { readonly caller: string } | undefined;
}

/** The rules of a column; undefined without any. `isKey` says that it is one of the key. */
export function columnRules(
  { read, write, readonly = false, immutable = false, set }: ColumnData,
  { path, isKey }: { readonly path: string; readonly isKey: boolean },
  problems: string[],
): ColumnRules | undefined {
  const rule = (name: 'read' | 'write', data: RuleData | undefined) => {
    if (data === undefined) return undefined;
    const grants = grantsOf(data);
    if (grants.some((each) => typeof each === 'object' && 'where' in each))
      problems.push(`${path}.${name} takes "anyone", "nobody" and scopes; conditions go into rules`);
    return grants;
  };
  const rules: ColumnRules = {
    read: rule('read', read),
    write: rule('write', write),
    fixed: readonly ? 'readonly' : immutable ? 'immutable' : undefined,
    set: set?.caller,
  };
  if (readonly && immutable) problems.push(`${path} is readonly and immutable; keep one of them`);
  for (const name of ['write', 'readonly', 'immutable'] as const) {
    const given = { write, readonly: readonly || undefined, immutable: immutable || undefined }[name];
    if (set !== undefined && given !== undefined)
      problems.push(`${path}.${name} does not go with set, which no client writes`);
  }
  if (isKey && read !== undefined)
    problems.push(`${path}.read is not possible for a column of the key, which paths and links have`);
  const isGiven = Object.values(rules).some((each) => each !== undefined);
  return isGiven ? rules : undefined;
}

/** Checks the names and values in the conditions of rules, once all relations are known. */
export function checkRuleTrees(
  relations: readonly Relation[],
  pathOf: (relation: Relation) => string,
  problems: string[],
): void {
  const byName = new Map(relations.map((relation) => [relation.name, relation]));
  for (const relation of relations) {
    for (const operation of OPERATIONS) {
      for (const grant of relation.rules?.[operation] ?? []) {
        if (grant === 'anyone' || !('where' in grant)) continue;
        const path = `${pathOf(relation)}.rules.${operation}`;
        const reader = new RuleTreeReader(byName, (problem) => problems.push(`${path} ${problem}`));
        reader.read(relation, grant.where);
      }
    }
  }
}
