/** A value of a source, and whether it is secret. */
export interface Property {
  readonly value: unknown;
  readonly origin: string;
  readonly secret: boolean;
}

/** A source of configuration with its properties. */
export interface PropertySource {
  readonly name: string;
  readonly properties: ReadonlyMap<string, Property>;
  /** The name of an option in this source, by its key, where the two differ. */
  readonly aliases?: ReadonlyMap<string, string>;
}

/** A property by its name in this source, or by the name of the option that it sets: `rest.port` is REST_PORT. */
export function findProperty({ properties, aliases }: PropertySource, name: string) {
  const key = properties.has(name) ? name : aliases?.get(name);
  const property = key === undefined ? undefined : properties.get(key);
  return key === undefined || property === undefined ? undefined : { ...property, key };
}
