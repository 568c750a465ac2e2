import type { ErrorFormat } from '@portico/transport';

/** A refusal outside of any operation has the form of a GraphQL result with errors. */
export const graphqlErrors: ErrorFormat = {
  contentType: 'application/json; charset=utf-8',
  body: (problem) =>
    JSON.stringify({ errors: [{ message: problem.message, extensions: { code: problem.code } }] }),
};
