import {
  type GraphQLDirective,
  type GraphQLField,
  type GraphQLFieldConfig,
  type GraphQLNamedType,
  GraphQLObjectType,
  GraphQLSchema,
  specifiedScalarTypes,
} from 'graphql';

/** How the fields of a type are made, by name. */
export type LazyFields = ReadonlyMap<string, () => GraphQLFieldConfig<unknown, unknown>>;

/** Types that are made when they are first asked for. */
interface LazyTypes {
  readonly names: Iterable<string>;
  /** How many were made so far. */
  readonly made: number;
  /** The type of users, which may be another than that of the schema. */
  readonly user: GraphQLObjectType;
  find(name: string): GraphQLNamedType | undefined;
}

/** A schema whose types are made when they are first asked for: a start pays for none of them. */
export class LazySchema extends GraphQLSchema {
  readonly types: LazyTypes;
  readonly #own: ReadonlyMap<string, GraphQLNamedType>;
  readonly #roots: readonly GraphQLObjectType[];
  readonly #typeMap: Record<string, GraphQLNamedType>;

  /** `roots` are the types of queries, mutations and subscriptions. */
  constructor(
    schema: GraphQLSchema,
    types: LazyTypes,
    roots: readonly GraphQLObjectType[],
    extensions: Readonly<Record<string, unknown>>,
  ) {
    const directives: readonly GraphQLDirective[] = schema.getDirectives();
    // A root type here would make all types that it leads to.
    super({ description: schema.description, directives, extensions, assumeValid: true });
    this.types = types;
    this.#roots = roots;
    const replaced = new Set(roots.map(({ name }) => name));
    const kept = Object.values(schema.getTypeMap())
      .filter(({ name }) => !replaced.has(name))
      .map((type) => (type.name === types.user.name ? types.user : type));
    this.#own = new Map([...roots, ...kept, ...specifiedScalarTypes].map((type) => [type.name, type]));
    this.#typeMap = lazily([...this.#own.keys(), ...types.names], (name) => this.getType(name));
  }

  override getQueryType(): GraphQLObjectType | undefined {
    return this.#roots[0];
  }

  override getMutationType(): GraphQLObjectType | undefined {
    return this.#roots[1];
  }

  override getSubscriptionType(): GraphQLObjectType | undefined {
    return this.#roots[2];
  }

  override getType(name: string): GraphQLNamedType | undefined {
    return this.#own.get(name) ?? this.types.find(name);
  }

  override getTypeMap(): Record<string, GraphQLNamedType> {
    return this.#typeMap;
  }
}

/** A type with more fields, some perhaps in place of earlier ones, which are made when they are first asked for. */
export class LazyObjectType extends GraphQLObjectType {
  readonly #fields: Record<string, GraphQLField<unknown, unknown>>;

  constructor(type: GraphQLObjectType | null | undefined, more: LazyFields) {
    if (type == null) throw new Error('Relations extend a schema with all root types and that of users');
    const config = type.toConfig();
    super(config);
    const own = super.getFields();
    const made = new Map(Object.entries(own).filter(([name]) => !more.has(name)));
    this.#fields = lazily([...Object.keys(own), ...more.keys()], (name) => {
      const make = more.get(name);
      if (!made.has(name) && make !== undefined) {
        const { [name]: field } = new GraphQLObjectType({
          name: config.name,
          fields: { [name]: make() },
        }).getFields();
        if (field !== undefined) made.set(name, field);
      }
      return made.get(name);
    });
  }

  override getFields(): Record<string, GraphQLField<unknown, unknown>> {
    return this.#fields;
  }
}

/** An object whose members are made when they are read. */
function lazily<T>(names: readonly string[], make: (name: string) => T | undefined): Record<string, T> {
  const known = new Set(names);
  const keys = [...known];
  return new Proxy<Record<string, T>>(Object.create(null), {
    get: (_target, name) => (typeof name === 'string' && known.has(name) ? make(name) : undefined),
    has: (_target, name) => typeof name === 'string' && known.has(name),
    ownKeys: () => keys,
    getOwnPropertyDescriptor(_target, name) {
      if (typeof name !== 'string' || !known.has(name)) return undefined;
      return { value: make(name), enumerable: true, configurable: true, writable: false };
    },
  });
}
