import type { GraphQLSchema } from 'graphql';
import { isId, isNumber, typeNameOf } from '../../../src/graphql/relations/types.ts';
import type { Relation } from '../../../src/relations/relation.ts';
import type { Answer } from '../../graphql/support/door.ts';
import type { Body } from './model.ts';

/** A reply to a mutation in the form that a reply of REST has. */
export interface WriteReply {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
  readonly body: any;
}

/** The statuses of refusals; that of others is 409. */
const STATUS: Readonly<Record<string, number>> = {
  NOT_ALLOWED: 403,
  NOT_FOUND: 404,
  PRECONDITION_FAILED: 412,
};

type Ask = (query: string, variables: Body) => Promise<Answer>;

/** Writes rows by mutations. */
export class GraphqlWrites {
  readonly #ask: Ask;
  readonly #schema: GraphQLSchema;
  /** Whether replies have the rows; a caller may read less than it writes. */
  readonly #isShown: boolean;

  constructor(schema: GraphQLSchema, ask: Ask, isShown = true) {
    this.#schema = schema;
    this.#ask = ask;
    this.#isShown = isShown;
  }

  /** `nested` selects rows within the row. */
  create(relation: Relation, data: Body, nested = ''): Promise<WriteReply> {
    return this.#send(relation, `create${typeNameOf(relation)}`, { data }, { status: 201, nested });
  }

  createAll(relation: Relation, data: readonly Body[]): Promise<WriteReply> {
    return this.#send(relation, `create${typeNameOf({ one: relation.name })}`, { data }, { status: 201 });
  }

  /** Creates a row, or changes the one with the same key. */
  upsert(relation: Relation, data: Body): Promise<WriteReply> {
    const on = relation.key.join('_and_');
    return this.#send(relation, `upsert${typeNameOf(relation)}`, { data, on }, { status: 200 });
  }

  update(relation: Relation, key: Body, data: Body, ifVersion?: number): Promise<WriteReply> {
    const field = `update${typeNameOf(relation)}`;
    return this.#send(relation, field, { ...key, data, ifVersion }, { status: 200 });
  }

  remove(relation: Relation, key: Body, ifVersion?: number): Promise<WriteReply> {
    return this.#send(relation, `delete${typeNameOf(relation)}`, { ...key, ifVersion }, { status: 204 });
  }

  async versionOf(relation: Relation, key: Body): Promise<number> {
    const { args, variables } = this.#arguments('Query', relation.one, key);
    const query = `query (${args[0]}) { row: ${relation.one}(${args[1]}) { _version } }`;
    const { body } = await this.#ask(query, variables);
    const { row } = body.data as { readonly row: { readonly _version: number } };
    return row._version;
  }

  async #send(
    relation: Relation,
    field: string,
    given: Body,
    { status, nested = '' }: { readonly status: number; readonly nested?: string },
  ): Promise<WriteReply> {
    const { args, variables } = this.#arguments('Mutation', field, given);
    const columns = this.#isShown ? relation.columns.map(({ name }) => name).join(' ') : '__typename';
    const selected = field.startsWith('delete') ? '' : `{ ${columns} ${nested} }`;
    const query = `mutation (${args[0]}) { it: ${field}(${args[1]}) ${selected} }`;
    const { status: http, text, body } = await this.#ask(query, variables);
    if (http !== 200) return { status: http, text, body };
    const [error] = body.errors ?? [];
    if (error !== undefined) {
      const { code, errors = [] } = error.extensions ?? {};
      const refused = code === undefined ? 400 : (STATUS[String(code)] ?? 409);
      return {
        status: refused,
        text: `${text} ${query} ${JSON.stringify(variables)}`,
        body: { code, errors },
      };
    }
    const it = body.data?.it;
    if (it === true || it === null || !this.#isShown) return { status, text, body: undefined };
    return {
      status,
      text,
      body: Array.isArray(it) ? it.map((row) => asRest(relation, row)) : asRest(relation, it),
    };
  }

  /** The variables of a field, and the arguments that use them. */
  #arguments(root: 'Query' | 'Mutation', field: string, given: Body) {
    const type = root === 'Query' ? this.#schema.getQueryType() : this.#schema.getMutationType();
    const known = type?.getFields()[field]?.args.filter(({ name }) => given[name] !== undefined) ?? [];
    return {
      args: [
        known.map((each) => `$${each.name}: ${each.type}`).join(', '),
        known.map(({ name }) => `${name}: $${name}`).join(', '),
      ],
      variables: Object.fromEntries(known.map(({ name }) => [name, given[name]])),
    };
  }
}

/** A row with the id as REST has it. */
function asRest({ columns, key }: Relation, row: unknown): Body {
  return Object.fromEntries(
    Object.entries(row as Body).map(([name, value]) => {
      const column = columns.find((each) => each.name === name);
      const isText = column !== undefined && isId({ key }, column) && isNumber(column.type);
      return [name, isText ? Number(value) : value];
    }),
  );
}
