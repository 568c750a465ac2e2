import { HttpProblem } from '@portico/transport';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { formatPointer, type JsonPointer, parsePointer, valueAt } from '../../core/json.ts';
import {
  type Column,
  hasRules,
  OPERATIONS,
  type Operation,
  type Relation,
  type Rule,
  type Value,
} from '../relation.ts';
import { type ColumnGuard, type Condition, type Relations, targetOf } from '../rows/conditions.ts';
import {
  ALL,
  allOf,
  anyOf,
  boundTo,
  type Claims,
  claimsOf,
  claimValue,
  isAll,
  NONE,
  noneOf,
  type RuleCondition,
  RuleTreeReader,
} from './rule-trees.ts';

/** A caller as rules see it. */
export interface RuleCaller {
  readonly kind: 'token' | 'user' | 'jwt';
  readonly name: string;
  readonly scopes: ReadonlySet<string>;
  readonly claims?: Claims;
}

/** Whether scopes alone let a caller read or write the rows of a relation without rules. */
type Allows = (caller: RuleCaller | undefined, need: 'read' | 'write', relation: string) => boolean;

/** What a caller may do with the rows of a relation. */
export interface RelationView extends Readonly<Record<Operation, Condition>> {
  readonly relation: Relation;
  /** Whether the relation has rules; otherwise scopes say who may do what. */
  readonly isRuled: boolean;
  /** The rows that a write by key finds; scopes may let a caller write rows that it may not read. */
  readonly found: Condition;
  /** The indexes of the columns that the caller may read; undefined for all. */
  readonly readable: readonly number[] | undefined;
  /** Why the caller may not write a column; undefined if it may. */
  unwritable(column: Column, isNew: boolean): string | undefined;
  /** The values that new rows get, by the index of their column; undefined if the claim is missing. */
  readonly set: ReadonlyMap<number, Exclude<Value, null> | undefined>;
}

/** What a caller may do with the rows of all relations. */
export interface RowView extends ColumnGuard {
  /** The same for views that show the same. */
  readonly key: string;
  of(relation: Pick<Relation, 'name'>): RelationView;
  /** The condition on rows of which another condition crosses to rows that the caller may read, and to no others. */
  guarded(condition: Condition): Condition;
  /** The conditions on the rows that a path of references leads to, one for each step; undefined without any. */
  guards(relation: Relation, path: readonly string[]): readonly Condition[] | undefined;
}

type Grants = readonly (Exclude<Rule[number], { readonly where: unknown }> | RuleCondition)[];

/** The rules of a relation with their names resolved. */
interface ResolvedRelation {
  readonly relation: Relation;
  readonly grants: Readonly<Record<Operation, Grants>> | undefined;
  readonly set: ReadonlyMap<number, JsonPointer>;
}

/** Maximum size of the views that are kept, in bytes, and of one without its key. */
const MAX_BYTES = 4 * 1024 * 1024;
const VIEW_BYTES = 2_000;

/** The rules of all relations of a declaration. */
export class RowRules {
  readonly #relations: Relations;
  readonly #allows: Allows;
  readonly #resolved: ReadonlyMap<string, ResolvedRelation>;
  readonly #scopes: ReadonlySet<string>;
  readonly #pointers: readonly JsonPointer[];
  readonly #byCaller = new WeakMap<RuleCaller, RowView>();
  readonly #byKey = new GenerationalCache<RowView>(MAX_BYTES);
  readonly #unruled: readonly string[];

  /** The rules of relations; undefined if none of them has any. */
  static of(relations: Relations, allows: Allows): RowRules | undefined {
    const all = [...relations.values()];
    return all.some(hasRules) ? new RowRules(relations, allows) : undefined;
  }

  private constructor(relations: Relations, allows: Allows) {
    this.#relations = relations;
    this.#allows = allows;
    const all = [...relations.values()];
    this.#resolved = new Map(all.map((relation) => [relation.name, resolved(relations, relation)]));
    const rules = all.flatMap((relation) => [
      ...Object.values<Rule>(relation.rules ?? {}),
      ...relation.columns.flatMap((column) => [column.rules?.read ?? [], column.rules?.write ?? []]),
    ]);
    this.#scopes = new Set(
      rules
        .flat()
        .flatMap((grant) => (typeof grant === 'object' && 'scope' in grant ? [grant.scope] : []))
        .toSorted(),
    );
    const pointers = [...this.#resolved.values()].flatMap(({ grants, set }) => [
      ...Object.values(grants ?? {})
        .flat()
        .flatMap((grant) => (typeof grant === 'object' && 'is' in grant ? claimsOf(grant) : [])),
      ...set.values(),
    ]);
    this.#pointers = [...new Set(pointers.map(formatPointer))].map((text) => parsePointer(text) ?? []);
    this.#unruled = all.filter(({ rules: own }) => own === undefined).map(({ name }) => name);
  }

  /** Whether a relation has rules for its rows. */
  governs(relation: string): boolean {
    return this.#resolved.get(relation)?.grants !== undefined;
  }

  viewOf(caller: RuleCaller | undefined): RowView {
    const known = caller && this.#byCaller.get(caller);
    if (known !== undefined) return known;
    const claims = claimsOfCaller(caller);
    // Asked now: the caller's credentials may be invalid when another caller uses the view.
    const allowed = new Map(
      this.#unruled.map((name) => [
        name,
        {
          read: this.#allows(caller, 'read', name),
          write: this.#allows(caller, 'write', name),
        },
      ]),
    );
    const key = JSON.stringify([
      [...this.#scopes].filter((scope) => caller?.scopes.has(scope)),
      this.#pointers.map((pointer) => valueAt(claims, pointer) ?? null),
      [...allowed.values()].map(({ read, write }) => `${Number(read)}${Number(write)}`),
    ]);
    let view = this.#byKey.get(key);
    if (view === undefined) {
      view = new CallerView(this.#relations, key, (name) =>
        this.#relationView(name, { caller, claims, allowed: allowed.get(name) }),
      );
      this.#byKey.set(key, view, VIEW_BYTES * (1 + this.#relations.size) + 2 * key.length);
    }
    if (caller !== undefined) this.#byCaller.set(caller, view);
    return view;
  }

  #relationView(name: string, { caller, claims, allowed }: Asked): RelationView {
    const found = this.#resolved.get(name);
    if (found === undefined) throw new Error(`There is no relation ${name}`);
    const { relation, grants, set } = found;
    const has = (rule: Rule | undefined) => isAll(conditionOf(rule as Grants | undefined, caller, claims));
    const hidden = relation.columns.flatMap((column, i) => (has(column.rules?.read) ? [] : [i]));
    const conditions = OPERATIONS.map((operation) => {
      const need = operation === 'read' ? 'read' : 'write';
      const condition =
        grants === undefined
          ? allowed?.[need] === true
            ? ALL
            : NONE
          : conditionOf(grants[operation], caller, claims);
      return [operation, condition] as const;
    });
    const all = Object.fromEntries(conditions) as Record<Operation, Condition>;
    return {
      ...all,
      relation,
      isRuled: grants !== undefined,
      found: grants === undefined ? ALL : all.read,
      readable:
        hidden.length === 0
          ? undefined
          : [...relation.columns.keys()].filter((index) => !hidden.includes(index)),
      unwritable({ name: column, rules }, isNew) {
        if (rules === undefined) return undefined;
        if (rules.set !== undefined) return `"${column}" is set by the service; leave it out`;
        if (rules.fixed === 'readonly') return `"${column}" is read-only; leave it out`;
        if (rules.fixed === 'immutable' && !isNew) return `"${column}" cannot change`;
        return has(rules.write) ? undefined : `the caller may not write "${column}"`;
      },
      set: new Map(
        Array.from(set, ([index, pointer]) => {
          const column = relation.columns[index];
          return [index, column && claimValue(column, valueAt(claims, pointer))] as const;
        }),
      ),
    };
  }
}

/** The caller of a view of a relation, and what scopes allow it if the relation has no rules. */
interface Asked {
  readonly caller: RuleCaller | undefined;
  readonly claims: Claims;
  readonly allowed: Readonly<Record<'read' | 'write', boolean>> | undefined;
}

/** The claims of a caller. Of a token or a user it is the name alone. */
function claimsOfCaller(caller: RuleCaller | undefined): Claims {
  if (caller === undefined) return {};
  return caller.kind === 'jwt' ? (caller.claims ?? {}) : { sub: caller.name };
}

function resolved(relations: Relations, relation: Relation): ResolvedRelation {
  const reader = new RuleTreeReader(relations, (problem) => {
    throw new Error(`A rule of ${relation.name} ${problem}`);
  });
  const { rules, columns } = relation;
  const grantsOf = (rule: Rule): Grants =>
    rule.map((grant) =>
      grant === 'anyone' || 'scope' in grant ? grant : reader.read(relation, grant.where),
    );
  const grants = rules && OPERATIONS.map((operation) => [operation, grantsOf(rules[operation])] as const);
  const set = columns.flatMap((column, i) =>
    column.rules?.set === undefined ? [] : [[i, parsePointer(column.rules.set) ?? []] as const],
  );
  return {
    relation,
    grants: grants && (Object.fromEntries(grants) as Record<Operation, Grants>),
    set: new Map(set),
  };
}

/** The rows for which one of the grants holds; all of them without a rule. */
function conditionOf(rule: Grants | undefined, caller: RuleCaller | undefined, claims: Claims): Condition {
  if (rule === undefined) return ALL;
  return anyOf(
    ...rule.map((grant) => {
      if (grant === 'anyone') return ALL;
      if ('is' in grant) return boundTo(claims, grant);
      return caller?.scopes.has(grant.scope) === true ? ALL : NONE;
    }),
  );
}

/** A view in which other rows of a relation are read. */
export function withRead(view: RowView, { name }: Pick<Relation, 'name'>, read: Condition): RowView {
  return {
    key: '',
    of: (relation) => (relation.name === name ? { ...view.of(relation), read } : view.of(relation)),
    guarded: (condition) => view.guarded(condition),
    guards: (relation, path) => view.guards(relation, path),
    requireReadable: (parameter, relation, column) => view.requireReadable(parameter, relation, column),
    readableOf: (relation) => view.readableOf(relation),
  };
}

class CallerView implements RowView {
  readonly key: string;
  readonly #relations: Relations;
  readonly #make: (name: string) => RelationView;
  readonly #views = new Map<string, RelationView>();

  constructor(relations: Relations, key: string, make: (name: string) => RelationView) {
    this.#relations = relations;
    this.key = key;
    this.#make = make;
  }

  of({ name }: Pick<Relation, 'name'>): RelationView {
    const known = this.#views.get(name);
    if (known !== undefined) return known;
    const made = this.#make(name);
    this.#views.set(name, made);
    return made;
  }

  readableOf(relation: Relation): readonly number[] | undefined {
    return this.of(relation).readable;
  }

  requireReadable(parameter: string, relation: Relation, { name }: Column): void {
    const { readable } = this.of(relation);
    if (readable?.some((i) => relation.columns[i]?.name === name) ?? true) return;
    const message = `"${parameter}" names "${name}", which the caller may not read in rows of ${relation.name}`;
    throw new HttpProblem(403, 'NOT_ALLOWED', message, { reasons: [{ detail: message, parameter }] });
  }

  guarded(condition: Condition): Condition {
    switch (condition.is) {
      case 'and':
      case 'or':
        return { ...condition, all: condition.all.map((each) => this.guarded(each)) };
      case 'not':
        return { ...condition, condition: this.guarded(condition.condition) };
      case 'some':
      case 'none':
      case 'every': {
        const { read } = this.of(condition.relation);
        const inside = this.guarded(condition.condition);
        const seen = condition.is === 'every' ? anyOf(noneOf(read), inside) : allOf(read, inside);
        return { ...condition, condition: seen };
      }
      default:
        return condition;
    }
  }

  guards(relation: Relation, path: readonly string[]): readonly Condition[] | undefined {
    let at = relation;
    const found = path.map((step) => {
      const target = targetOf(this.#relations, at, step);
      if (target === undefined) throw new Error(`${step} is no reference`);
      at = target.relation;
      return this.of(at).read;
    });
    return found.every(isAll) ? undefined : found;
  }
}
