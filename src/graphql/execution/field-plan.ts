import type { FieldNode, GraphQLField, GraphQLFieldResolver, GraphQLObjectType } from 'graphql';
import type { ReadArguments } from './arguments.ts';
import type { OutputPlan } from './output-plan.ts';

/** A field of a selection, with all that is the same in each run. */
export interface FieldPlan {
  /** Its name in the result. */
  readonly key: string;
  readonly name: string;
  readonly parent: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  /** Where the document asks for it: more than once, when selections are merged. */
  readonly nodes: readonly FieldNode[];
  /** Whether it has neither a resolver nor arguments: nearly always a property of its parent's value. */
  readonly isProperty: boolean;
  readonly resolve: GraphQLFieldResolver<unknown, unknown>;
  /** Whether a type is asked about values, which takes the field's info. */
  readonly needsInfo: boolean;
  /**
   * Whether the root type's resolver runs once in an operation for all fields with the same arguments: the definition has
   * `extensions.once`, and the selection asks for it more than once.
   */
  readonly once: boolean;
  /** Whether no item of its list is a promise, so that none is looked for: the definition has `extensions.plain`. */
  readonly isPlain: boolean;
  readonly readArguments: ReadArguments;
  readonly output: OutputPlan;
  /** What is asked of its value, which is an object of this type. */
  readonly select: (type: GraphQLObjectType) => SelectionPlan;
}

/** What is asked of an object of one type. */
export interface SelectionPlan {
  readonly fields: readonly FieldPlan[];
  /** Makes an empty part of the result. */
  readonly create: () => Record<string, unknown>;
  /** What an object of it takes in JSON, without the text of its values, in bytes. */
  readonly bytes: number;
}
