/** A source of configuration with its properties. */
export interface PropertySource {
  readonly name: string;
  readonly properties: ReadonlyMap<
    string,
    { readonly value: unknown; readonly origin: string; readonly secret: boolean }
  >;
  /** The name of an option in this source, by its key, where the two differ. */
  readonly aliases?: ReadonlyMap<string, string>;
}
