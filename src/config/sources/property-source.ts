/** One place that configuration comes from, with what it says. */
export interface PropertySource {
  readonly name: string;
  readonly properties: ReadonlyMap<
    string,
    { readonly value: unknown; readonly origin: string; readonly secret: boolean }
  >;
  /** By the key of an option, the name under which this source has it, where that is another one. */
  readonly aliases?: ReadonlyMap<string, string>;
}
