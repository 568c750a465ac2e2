import type { Relation } from '../../relations/relation.ts';
import { jsonReply } from '../management-errors.ts';
import type { Routes } from '../operations.ts';

/** The console's route for the rules of all relations, as they are declared. */
export function ruleRoutes(relations: readonly Relation[]): Routes {
  const shown = relations.map(({ name, rules, columns }) => ({
    name,
    rules: rules ?? null,
    columns: columns.flatMap(({ name: column, rules: own }) =>
      own === undefined
        ? []
        : [
            {
              name: column,
              read: own.read ?? null,
              write: own.write ?? null,
              fixed: own.fixed ?? null,
              set: own.set ?? null,
            },
          ],
    ),
  }));
  return { '/rules': { get: (ctx) => jsonReply(ctx, { relations: shown }) } };
}
