/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 has it. */
export type Schema = Readonly<Record<string, unknown>>;

/** An object with these members; those whose name ends with `?` may be absent. Others may be there too. */
export function object(members: Readonly<Record<string, Schema>>, description?: string): Schema {
  const named = Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema] as const);
  const required = Object.keys(members).filter((name) => !name.endsWith('?'));
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(named),
  };
}

/** An object of any names, each with a value of one schema. */
export function mapOf(values: Schema, description?: string): Schema {
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    additionalProperties: values,
  };
}

/** A list of items of one schema. */
export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

/** A text; the description says what it holds. */
export function text(description?: string, more: Schema = {}): Schema {
  return { type: 'string', ...(description === undefined ? {} : { description }), ...more };
}

/** One of some texts. */
export function oneOfTexts(values: readonly string[], description?: string): Schema {
  return text(description, { enum: values });
}

/** A text that may be null. */
export function textOrNull(description?: string, more: Schema = {}): Schema {
  return { ...text(description, more), type: ['string', 'null'] };
}

/** A number that is whole. */
export function integer(description?: string, more: Schema = {}): Schema {
  return { type: 'integer', ...(description === undefined ? {} : { description }), ...more };
}

/** A time in ISO 8601. */
export const TIME = text(undefined, { format: 'date-time' });

/** A schema of the components, by its name. */
export function named(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}
