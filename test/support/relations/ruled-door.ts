import assert from 'node:assert/strict';
import { readRelations } from '../../../src/config/schema/relations.ts';
import type { Relation } from '../../../src/relations/relation.ts';
import { AUDIENCE, type Claims, ISSUER, startIssuer } from '../../access/support/tokens.ts';
import { type Answer, ask } from '../../graphql/support/door.ts';
import { type RelationDoor, type RelationReply, relationDoors } from './relation-door.ts';

/** The relations of a declaration as data. */
export function declared(data: unknown): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'relations' }, problems);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return relations;
}

/** Sends requests as one caller. */
export interface Caller {
  readonly name: string;
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<RelationReply>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<RelationReply>;
  /** Runs an operation at the GraphQL door. */
  ask(query: string, variables?: Readonly<Record<string, unknown>>): Promise<Answer>;
  /** The data of an operation that must not have errors. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
  data(query: string, variables?: Readonly<Record<string, unknown>>): Promise<any>;
  /** The code of the only error of an operation. */
  code(query: string, variables?: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** The headers that name the caller. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A door with rules and callers of all kinds. */
export interface RuledDoor extends AsyncDisposable {
  readonly door: RelationDoor;
  /** A caller with a signed token of these claims. */
  caller(name: string, claims?: Claims): Promise<Caller>;
  readonly anonymous: Caller;
}

/** Opens doors with an identity provider, one for each engine. */
export const ruledDoors = Object.entries(relationDoors).map(([engine, open]) => {
  const openRuled = async (
    relations: readonly Relation[],
    required: 'none' | 'write' | 'all' = 'write',
  ): Promise<RuledDoor> => {
    const resources = new AsyncDisposableStack();
    const issuer = resources.use(await startIssuer());
    const api = { required, jwt: { issuer: ISSUER, audience: AUDIENCE, jwks: issuer.url } };
    const door = resources.use(await open(relations, { api, graphql: true }));
    const callerOf = (name: string, headers: Readonly<Record<string, string>>): Caller => ({
      name,
      headers,
      send: (method, path, body, more) => door.send(method, path, body, { ...headers, ...more }),
      get: (path, more) => door.get(path, { ...headers, ...more }),
      ask: (query, variables) => ask(door.graphql, { query, variables }, headers),
      async data(query, variables) {
        const { body, text } = await this.ask(query, variables);
        assert.equal(body.errors, undefined, `${name} ${query} ${text}`);
        return body.data;
      },
      async code(query, variables) {
        const { body, text } = await this.ask(query, variables);
        assert.equal(body.errors?.length, 1, `${name} ${query} ${text}`);
        return body.errors?.[0]?.extensions?.code;
      },
    });
    return {
      door,
      anonymous: callerOf('anonymous', {}),
      caller: async (name, claims = {}) =>
        callerOf(name, { authorization: `Bearer ${await issuer.sign(claims)}` }),
      [Symbol.asyncDispose]: () => resources.disposeAsync(),
    };
  };
  return { engine, open: openRuled };
});
