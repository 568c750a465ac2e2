import { formatPointer, type JsonPointer } from '../../core/json.ts';
import { TimeSlice } from '../../core/scheduler.ts';
import type { RelationEvent } from '../events.ts';
import type { Column, Relation, Rule } from '../relation.ts';
import { isMetBy, isOfRowAlone } from '../rows/changes.ts';
import type { Condition, Relations } from '../rows/conditions.ts';
import type { RowStore } from '../rows/rows.ts';
import {
  ALL,
  allOf,
  anyOf,
  boundTo,
  claimsOf,
  claimValue,
  isAll,
  isNone,
  NONE,
  type RuleCondition,
  RuleTreeReader,
} from './rule-trees.ts';
import { type SeenEvent, seenEvents } from './seen-events.ts';
import { type RowRules, type RuleCaller, withRead } from './views.ts';

type Members = Readonly<Record<string, unknown>>;

/** The events that a reader may see. */
export interface SeenBy {
  readonly name: string;
  readonly seen: readonly SeenEvent[];
}

/** The readers of a relation: callers with one claim, their name, and without scopes. */
export class RowReaders {
  readonly #rules: RowRules;
  readonly #rows: RowStore;
  readonly #pointer: JsonPointer;
  readonly #claim: string;
  readonly #condition: RuleCondition;

  /** `pointer` is that of the claim. */
  constructor(relations: Relations, rules: RowRules, rows: RowStore, pointer: JsonPointer) {
    this.#rules = rules;
    this.#rows = rows;
    this.#pointer = pointer;
    this.#claim = formatPointer(pointer);
    this.#condition = readCondition(relations, rows.relation);
  }

  /** The names of all readers that may see some of the events, and perhaps others; undefined if rows do not tell them. */
  namesIn(events: readonly RelationEvent[]): ReadonlySet<string> | undefined {
    const names = new Set<string>();
    for (const { json, before } of events) {
      const rows: Members[] = [JSON.parse(json).row, ...(before === undefined ? [] : [JSON.parse(before)])];
      for (const row of rows) {
        const found = this.#namesIn(this.#condition, row);
        if (found === undefined) return undefined;
        for (const name of found) names.add(name);
      }
    }
    return names;
  }

  /**
   * The events that each of some readers may see, as the feed of changes shows them. Halves the readers as long as one of
   * them may see an event, so that few statements find few of many.
   */
  async *seenBy(names: readonly string[], events: readonly RelationEvent[]): AsyncGenerator<SeenBy> {
    const slice = new TimeSlice();
    const left = [{ names, events }];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (slice.isOver) await slice.next();
      const [name, ...others] = next.names;
      if (name === undefined) continue;
      if (others.length === 0) {
        const seen = await seenEvents(this.#rules.viewOf(this.#callerOf(name)), this.#rows, next.events);
        if (seen.length > 0) yield { name, seen };
        continue;
      }
      const some = await this.#seenBySome(next.names, next.events);
      if (some.length === 0) continue;
      const middle = next.names.length >> 1;
      left.push({ names: next.names.slice(middle), events: some });
      left.push({ names: next.names.slice(0, middle), events: some });
    }
  }

  /** The events that one of the readers may see, and perhaps others. */
  async #seenBySome(names: readonly string[], events: readonly RelationEvent[]) {
    const read = this.#forSome(this.#condition, names);
    if (read === undefined || isAll(read)) return events;
    if (isNone(read)) return [];
    const view = withRead(this.#rules.viewOf(undefined), this.#rows.relation, read);
    const found = new Set<number>();
    for (const { event } of await seenEvents(view, this.#rows, events)) found.add(event.position);
    return events.filter(({ position }) => found.has(position));
  }

  #callerOf(name: string): RuleCaller {
    const claims = this.#pointer.reduceRight<unknown>((value, key) => ({ [key]: value }), name);
    return { kind: 'jwt', name, scopes: new Set(), claims: claims as Members };
  }

  #asksFor(condition: RuleCondition): boolean {
    return claimsOf(condition).some((pointer) => formatPointer(pointer) === this.#claim);
  }

  /** The names with which a row meets a condition, and perhaps others; undefined if it may be any. */
  #namesIn(condition: RuleCondition, row: Members): ReadonlySet<string> | undefined {
    if (!this.#asksFor(condition)) {
      const bound = boundTo({}, condition);
      return isOfRowAlone(bound) && !isMetBy(row, bound) ? new Set() : undefined;
    }
    switch (condition.is) {
      case 'claim':
        return isEquality(condition) ? nameIn(condition.column, row) : undefined;
      case 'and': {
        const all = condition.all.flatMap((each) => this.#namesIn(each, row) ?? []);
        return all.toSorted((a, b) => a.size - b.size)[0];
      }
      case 'or': {
        const all = condition.all.map((each) => this.#namesIn(each, row));
        const found = all.flatMap((each) => each ?? []);
        return found.length < all.length ? undefined : new Set(found.flatMap((each) => [...each]));
      }
      default:
        return undefined;
    }
  }

  /** The condition that a row meets if it meets one for a reader, and perhaps otherwise; undefined if none says so. */
  #forSome(condition: RuleCondition, names: readonly string[]): Condition | undefined {
    if (!this.#asksFor(condition)) return boundTo({}, condition);
    switch (condition.is) {
      case 'claim': {
        const { column } = condition;
        if (!isEquality(condition) || column.type.kind === 'bytes') return undefined;
        const values = names.flatMap((name) => claimValue(column, name) ?? []);
        return values.length === 0 ? NONE : { is: 'in', column, values };
      }
      case 'and':
      case 'or': {
        const all = condition.all.flatMap((each) => this.#forSome(each, names) ?? []);
        if (all.length < condition.all.length) return undefined;
        return condition.is === 'and' ? allOf(...all) : anyOf(...all);
      }
      case 'some': {
        const inside = this.#forSome(condition.condition, names);
        if (inside === undefined || isNone(inside)) return inside;
        return { ...condition, condition: inside };
      }
      default:
        return undefined;
    }
  }
}

/** Why no reader with this claim and without scopes may read rows by a rule, or why the claim is likely to be wrong. */
export function claimProblem(
  relations: Relations,
  relation: Relation,
  pointer: JsonPointer,
): string | undefined {
  const { rules, name } = relation;
  if (rules === undefined) return `needs rules, and ${name} has none; name a column with "tenant" instead`;
  if (rules.read.includes('anyone')) return undefined;
  const claim = formatPointer(pointer);
  const condition = readCondition(relations, relation);
  if (condition.is === 'or' && condition.all.length === 0)
    return `lets no tenant read: the read rule of ${name} asks for scopes, and a tenant has only the claim "${claim}"`;
  const asked = [...new Set(claimsOf(condition).map(formatPointer))];
  if (asked.length === 0 || asked.includes(claim)) return undefined;
  return `is "${claim}", but the read rule of ${name} asks for ${asked.map((each) => `"${each}"`).join(', ')}`;
}

/** The condition of the read rule for callers without scopes. */
function readCondition(relations: Relations, relation: Relation): RuleCondition {
  const trees = new RuleTreeReader(relations, (problem) => {
    throw new Error(`A rule of ${relation.name} ${problem}`);
  });
  const rule: Rule = relation.rules?.read ?? [];
  if (rule.includes('anyone')) return ALL as RuleCondition;
  const all = rule.flatMap((grant) =>
    grant !== 'anyone' && 'where' in grant ? trees.read(relation, grant.where) : [],
  );
  return { is: 'or', all };
}

const isEquality = ({ test }: Extract<RuleCondition, { readonly is: 'claim' }>) =>
  test === 'eq' || test === 'in';

/** The only name that equals the value of a column; undefined if several may. */
function nameIn({ name, type }: Column, row: Members): ReadonlySet<string> | undefined {
  const value = row[name] ?? null;
  if (value === null) return new Set();
  const isText = (type.kind === 'text' && !type.fold) || type.kind === 'enum';
  const isNumber = (type.kind === 'serial' || type.kind === 'integer') && value !== 0;
  return isText || isNumber ? new Set([String(value)]) : undefined;
}
