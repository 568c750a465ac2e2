import { didYouMean, quote } from '../../core/text.ts';
import type { Many, Reference, Relation } from '../../relations/relation.ts';
import { EXISTING_NAME, NAME, NAMED } from './columns.ts';
import { pathTo } from './fields.ts';
import type { Draft } from './relation-draft.ts';

type Linked = Omit<Relation, 'many'>;

/** The many-to-manies of a relation, each through a relation that refers to it and to another. */
export function manyOf(
  { path: place, options: { many = {}, existing } }: Draft,
  relation: Linked,
  relations: readonly Linked[],
  problems: string[],
): readonly Many[] {
  const { columns, references, inverses } = relation;
  const taken = new Set([...columns, ...references, ...inverses].map(({ name }) => name.toLowerCase()));
  return Object.entries(many).flatMap(([name, { through, from, to }]): readonly Many[] => {
    const path = pathTo(`${place}.many`, name);
    if (!(existing ? EXISTING_NAME : NAME).test(name)) problems.push(`${path} ${NAMED}`);
    else if (taken.has(name.toLowerCase()))
      problems.push(`${path} has the name of a column, a reference or an inverse; rename it`);
    taken.add(name.toLowerCase());
    const connecting = relations.find((each) => each.name === through);
    if (connecting === undefined) {
      const names = relations.map((each) => each.name);
      problems.push(`${path}.through ${quote(through)} is not a relation${didYouMean(through, names)}`);
      return [];
    }
    const all = connecting.references;
    const back = chosen(
      { path, key: 'from', name: from, relation: connecting },
      all.filter((each) => each.to === relation.name),
      problems,
    );
    if (back === undefined) return [];
    const onward = chosen(
      { path, key: 'to', name: to, relation: connecting },
      all.filter((each) => each !== back),
      problems,
    );
    return onward === undefined ? [] : [{ name, through, reference: back.name, other: onward.name }];
  });
}

/** The named reference, or the only one that is possible. */
function chosen(
  { path, key, name, relation }: { path: string; key: string; name: string | undefined; relation: Linked },
  possible: readonly Reference[],
  problems: string[],
): Reference | undefined {
  const names = possible.map((each) => each.name);
  if (name === undefined && possible.length === 1) return possible[0];
  const found = possible.find((each) => each.name === name);
  if (found !== undefined) return found;
  const whose = `reference of ${relation.name}${key === 'from' ? ' to this relation' : ' to the other relation'}`;
  if (possible.length === 0) problems.push(`${path} needs a ${whose}, which has none`);
  else if (name === undefined)
    problems.push(`${path}.${key} is missing: the ${whose}, one of ${names.join(', ')}`);
  else problems.push(`${path}.${key} ${quote(name)} is not a ${whose}${didYouMean(name, names)}`);
  return undefined;
}
