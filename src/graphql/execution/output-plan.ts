import {
  type GraphQLAbstractType,
  GraphQLID,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLString,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
} from 'graphql';

/** How a value of a type becomes part of the result. */
export type OutputPlan = { readonly nonNull: boolean } & (
  | {
      readonly kind: 'leaf';
      readonly type: GraphQLLeafType;
      /** Whether a string stands for itself, so that nothing has to be called. */
      readonly takesText: boolean;
    }
  | { readonly kind: 'list'; readonly item: OutputPlan }
  | { readonly kind: 'object'; readonly type: GraphQLObjectType }
  | { readonly kind: 'abstract'; readonly type: GraphQLAbstractType }
);

/** Plans the output of a declared type, its wrappers included. */
export function planOutput(declared: GraphQLOutputType): OutputPlan {
  const nonNull = isNonNullType(declared);
  const type = nonNull ? declared.ofType : declared;
  if (isListType(type)) return { kind: 'list', nonNull, item: planOutput(type.ofType) };
  if (isLeafType(type)) {
    return { kind: 'leaf', nonNull, type, takesText: type === GraphQLString || type === GraphQLID };
  }
  return isAbstractType(type) ? { kind: 'abstract', nonNull, type } : { kind: 'object', nonNull, type };
}
