import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type GraphQLNamedType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedDirective,
  isSpecifiedScalarType,
} from 'graphql';
import { LocalUserFeed } from '../relations/events.ts';
import { MemoryUserStore } from '../relations/user-stores.ts';
import { usersSchema } from './users-schema.ts';

const feed = new LocalUserFeed();
const schema = usersSchema(new MemoryUserStore(feed, 10), feed);

/** A part of the schema by the name that documentation uses for it. */
type Described = readonly [name: string, description: string | null | undefined];

function partsOf(type: GraphQLNamedType): readonly Described[] {
  const fields = isObjectType(type) ? Object.values(type.getFields()) : [];
  return [
    [type.name, type.description],
    ...fields.flatMap(({ name, description, args }): readonly Described[] => [
      [`${type.name}.${name}`, description],
      ...args.map((arg): Described => [`${type.name}.${name}(${arg.name}:)`, arg.description]),
    ]),
  ];
}

test('the schema and each type, field and argument of its own has a description', () => {
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
  // The walk knows the parts of object types; another kind of type needs another step.
  assert.deepEqual(
    types.filter((type) => !isObjectType(type)),
    [],
  );
  assert.deepEqual(
    schema.getDirectives().filter((directive) => !isSpecifiedDirective(directive)),
    [],
  );
  const parts: readonly Described[] = [['schema', schema.description], ...types.flatMap(partsOf)];
  assert.ok(parts.some(([name]) => name === 'Mutation.createUser(email:)'));
  for (const [name, description] of parts) {
    assert.match(description ?? '', /^[A-Z][^\n]{5,90}\.$/, `${name} needs a short sentence`);
  }
});
