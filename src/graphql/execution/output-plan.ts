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
export type OutputPlan = {
  readonly nonNull: boolean;
  /** Whether a type is asked about values: `resolveType` or `isTypeOf`. */
  readonly asksType: boolean;
} & (
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
  if (isListType(type)) {
    const item = planOutput(type.ofType);
    return { kind: 'list', nonNull, asksType: item.asksType, item };
  }
  if (isLeafType(type)) {
    const takesText = type === GraphQLString || type === GraphQLID;
    return { kind: 'leaf', nonNull, asksType: false, type, takesText };
  }
  return isAbstractType(type)
    ? { kind: 'abstract', nonNull, asksType: true, type }
    : { kind: 'object', nonNull, asksType: type.isTypeOf != null, type };
}
