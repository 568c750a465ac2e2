import * as v from 'valibot';
import type { BeforeHooks } from '../../relations/hooks/hooks.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import { functionField, type Given, pathTo, readObject, wholeNumberField } from './fields.ts';

const MAX_TIMEOUT = 60_000;

const hooksSchema = v.object(
  {
    create: v.optional(functionField<NonNullable<BeforeHooks['create']>>()),
    update: v.optional(functionField<NonNullable<BeforeHooks['update']>>()),
    delete: v.optional(functionField<NonNullable<BeforeHooks['delete']>>()),
    timeout: v.optional(
      wholeNumberField(1, MAX_TIMEOUT, `must be a whole number of milliseconds from 1 to ${MAX_TIMEOUT}`),
    ),
  },
  'must be an object with create, update or delete, which are functions of a module',
);

/** Reads the hooks of a relation; undefined without any. */
export function readHooks(given: Given, problems: string[]): BeforeHooks | undefined {
  if (given.value === undefined) return undefined;
  const read = readObject(hooksSchema, given, problems);
  if (read === undefined) return undefined;
  const hooks = Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined));
  const hasAny = read.create !== undefined || read.update !== undefined || read.delete !== undefined;
  return hasAny ? (hooks as BeforeHooks) : undefined;
}

/** Refuses references by which the engine would change or remove rows without their hooks. */
export function checkHooks(
  relations: readonly Relation[],
  pathOf: (name: string) => string,
  problems: string[],
): void {
  for (const { name, before, references } of relations) {
    for (const reference of before === undefined ? [] : references) {
      const hook = { cascade: 'delete', null: 'update', restrict: undefined }[reference.onDelete] as
        | 'delete'
        | 'update'
        | undefined;
      if (hook === undefined || before?.[hook] === undefined) continue;
      const path = pathTo(`${pathOf(name)}.columns`, reference.name);
      const whose = reference.to === USERS ? 'a user' : `a row of ${reference.to}`;
      problems.push(
        `${path}.onDelete "${reference.onDelete}" does not go with before.${hook}: the database would not call it when ${whose} is removed; restrict, and let a hook of ${reference.to} do it`,
      );
    }
  }
}
