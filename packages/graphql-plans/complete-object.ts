import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  isObjectType,
} from 'graphql';
import { isThenable, type MaybePromise } from '../../src/core/maybe-promise.ts';
import { executeFields } from './execute.ts';
import type { FieldPlan } from './plans.ts';
import { after, type Path, type Run } from './run.ts';

type Results = Record<string, unknown>;
type Info = GraphQLResolveInfo | undefined;

/** Completes a value as an object of a type, which may be asked whether it is one. */
export function completeObject(
  run: Run,
  field: FieldPlan,
  info: Info,
  type: GraphQLObjectType,
  path: Path,
  value: unknown,
): MaybePromise<Results> {
  if (type.isTypeOf == null) return executeFields(run, field.select(type), value, path);
  const execute = (fits: boolean): MaybePromise<Results> => {
    // The value is the program's, and no text for a client.
    if (!fits) throw new TypeError(`Expected value of type "${type}" but got another one.`);
    return executeFields(run, field.select(type), value, path);
  };
  const fits = type.isTypeOf(value, run.context, info as GraphQLResolveInfo);
  return isThenable(fits) ? later(run, fits, execute) : execute(fits);
}

/** Completes a value as an object of the type that an interface or a union names for it. */
export function completeAbstract(
  run: Run,
  field: FieldPlan,
  info: Info,
  abstract: GraphQLAbstractType,
  path: Path,
  value: unknown,
): MaybePromise<Results> {
  const execute = (name: unknown): MaybePromise<Results> =>
    completeObject(run, field, info, possibleType(run, field, abstract, name), path, value);
  const resolveType = abstract.resolveType ?? defaultTypeResolver;
  const name = resolveType(value, run.context, info as GraphQLResolveInfo, abstract);
  return isThenable(name) ? later(run, name, execute) : execute(name);
}

/** Goes on when a type has answered, unless the result is out by then. */
function later<T>(
  run: Run,
  answer: PromiseLike<T>,
  execute: (value: T) => MaybePromise<Results>,
): Promise<Results> {
  return after(answer, (value) => {
    run.checkUnfinished();
    return execute(value);
  });
}

function possibleType(
  run: Run,
  field: FieldPlan,
  abstract: GraphQLAbstractType,
  name: unknown,
): GraphQLObjectType {
  const place = `"${abstract}" must resolve to an Object type at runtime for field "${field.parent}.${field.name}"`;
  if (name === undefined || name === null) {
    throw new TypeError(
      `Abstract type ${place}. Either the "${abstract}" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function.`,
    );
  }
  if (typeof name !== 'string') {
    throw new TypeError(`Abstract type ${place}, received what is not a valid Object type name.`);
  }
  const type = run.schema.getType(name);
  if (type == null) {
    throw new TypeError(
      `Abstract type "${abstract}" was resolved to a type "${name}" that does not exist inside the schema.`,
    );
  }
  if (!isObjectType(type)) {
    throw new TypeError(`Abstract type "${abstract}" was resolved to a non-object type "${name}".`);
  }
  if (!run.schema.isSubType(abstract, type)) {
    throw new TypeError(`Runtime Object type "${type}" is not a possible type for "${abstract}".`);
  }
  return type;
}
