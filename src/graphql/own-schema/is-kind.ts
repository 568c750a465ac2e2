/** Whether a value is of a class of GraphQL.js, whichever copy it is from: `Schema` stands for GraphQLSchema. */
export function isKind<T>(value: unknown, name: string): value is T {
  return Object.prototype.toString.call(value) === `[object GraphQL${name}]`;
}
