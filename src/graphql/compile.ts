import type { DocumentNode, ExecutionResult, GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../users/maybe-promise.ts';

/** An operation as a function of its variables and context. */
export type Compiled = (
  variables: Readonly<Record<string, unknown>>,
  context: unknown,
) => MaybePromise<ExecutionResult>;

/** Compiles an operation; undefined while it cannot be compiled, or not yet. */
export type Compile = (document: DocumentNode, operationName: string | undefined) => Compiled | undefined;

/**
 * Makes a compiler for a schema. The compiler itself is loaded when the first operation asks for it, which keeps
 * the start short; until it is there operations are interpreted.
 */
export function createCompile(schema: GraphQLSchema): Compile {
  let jit: typeof import('graphql-jit') | 'loading' | undefined;
  return (document, operationName) => {
    if (jit === undefined) {
      jit = 'loading';
      void import('graphql-jit').then((loaded) => {
        jit = loaded;
      });
    }
    if (jit === 'loading') return undefined;
    const { compileQuery, isCompiledQuery } = jit;
    const compiled = compileQuery(schema, document, operationName ?? '');
    if (!isCompiledQuery(compiled)) return undefined;
    const { query } = compiled;
    return (variables, context) => query(undefined, context, variables);
  };
}
