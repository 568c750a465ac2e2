import { quote } from '../../core/text.ts';
import { EXISTING_NAME, NAME, NAMED } from './columns.ts';
import { pathTo } from './fields.ts';
import type { Draft } from './relation-draft.ts';
import { isReserved } from './reserved-names.ts';

/** Paths of the REST door. */
const RESERVED_PATHS = ['update', 'delete'];
/** Types and fields that GraphQL has already. */
const RESERVED_SINGULARS = ['user', 'query', 'mutation', 'subscription'];
/** A relation with its names as far as they are known. */
interface Named {
  readonly one: string;
  readonly table: string;
}

/** The names of relations, their singulars and tables, none of which may be taken. */
export function checkNames(drafts: readonly Draft[], relations: readonly Named[], problems: string[]): void {
  const names = new Set(drafts.map(({ name }) => name.toLowerCase()));
  const singulars = new Map<string, string>();
  const tables = new Map<string, string>();
  const found = new Map<string, string>();
  for (const [at, { name, path, options, fields, computed, references }] of drafts.entries()) {
    const { one = name, table = name } = relations[at] ?? {};
    if (RESERVED_PATHS.includes(name)) {
      problems.push(`${path} has the name of a path of Portico; rename it`);
    } else if (!(options.existing ? EXISTING_NAME : NAME).test(name)) {
      problems.push(`${path} ${NAMED}`);
    } else if (options.schema === undefined && isReserved(table)) {
      const place = options.table === undefined ? path : `${path}.table`;
      const remedy = options.table === undefined ? `write table: '${name}_of_mine'` : 'name another one';
      problems.push(`${place} has the name of a table or an index of Portico or its database; ${remedy}`);
    }
    const place = `${options.schema === undefined ? '' : `${options.schema}.`}${table}`;
    if (claim(found, name, path, 'name', problems)) claim(tables, place, path, 'table', problems);
    const singular = one.toLowerCase();
    if (RESERVED_SINGULARS.includes(singular))
      problems.push(`${path}.one ${quote(one)} is taken by Portico; name another one`);
    else if (names.has(singular) && (options.one !== undefined || singular !== name.toLowerCase()))
      problems.push(`${path}.one ${quote(one)} is the name of a relation; name another one`);
    else claim(singulars, one, path, 'one', problems);
    checkWas(drafts, relations, at, problems);
    const members = new Map<string, string>();
    for (const field of fields.values()) claim(members, field.name, field.path, 'name', problems);
    for (const name of computed) claim(members, name, pathTo(`${path}.computed`, name), 'name', problems);
    for (const reference of references.keys()) {
      claim(members, reference, pathTo(`${path}.columns`, reference), 'name', problems);
    }
  }
}

/** Notes a name of its kind; a problem and false if another one has it, as SQLite ignores case. */
function claim(
  taken: Map<string, string>,
  name: string,
  path: string,
  kind: string,
  problems: string[],
): boolean {
  const other = taken.get(name.toLowerCase());
  if (other === undefined) {
    taken.set(name.toLowerCase(), path);
    return true;
  }
  problems.push(`${path} has the ${kind} ${quote(name)}, and so has ${other}; rename one of them`);
  return false;
}

function checkWas(
  drafts: readonly Draft[],
  relations: readonly Named[],
  at: number,
  problems: string[],
): void {
  const {
    path,
    options: { was },
  } = drafts[at] as Draft;
  if (was === undefined) return;
  if (relations.some(({ table }) => table === was))
    problems.push(`${path}.was names ${was}, which is still a table`);
  if (drafts.some((draft, index) => index < at && draft.options.was === was))
    problems.push(`${path}.was names ${was}, and so does another relation`);
}

/** Checks that each inverse is the only member of its name at its target. */
export function checkInverses(drafts: readonly Draft[], problems: string[]): void {
  const taken = new Map<string, { readonly path: string; readonly isWritten: boolean }>();
  for (const { name, path: relation, references } of drafts) {
    for (const [reference, { data }] of references) {
      const path = pathTo(`${relation}.columns`, reference);
      const isWritten = data.inverse !== undefined;
      const inverse = data.inverse ?? name;
      const place = `${data.to} ${inverse}`;
      const other = taken.get(place);
      const target = drafts.find((draft) => draft.name === data.to);
      if (other !== undefined && !(isWritten && other.isWritten))
        problems.push(`${path} and ${other.path} both refer to ${data.to}; give each an inverse`);
      else if (other !== undefined)
        problems.push(`${path}.inverse ${quote(inverse)} is also that of ${other.path}; rename one of them`);
      else if (
        target?.fields.has(inverse) ||
        target?.references.has(inverse) ||
        target?.computed.includes(inverse)
      )
        problems.push(`${path}.inverse ${quote(inverse)} is a column of ${data.to}; name another one`);
      taken.set(place, { path, isWritten });
    }
  }
}
