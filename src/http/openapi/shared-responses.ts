/** The responses that operations share: most refusals are those of many. Each is in the document once, under a name. */
export class SharedResponses {
  /** By name, for the components of the document. */
  readonly byName = new Map<string, object>();
  readonly #names = new Map<string, string>();

  /** A reference to a response; its name begins with `kind`. */
  refer(kind: string, response: object): { readonly $ref: string } {
    const text = JSON.stringify(response);
    const known = this.#names.get(text);
    const name = known ?? this.#newName(kind);
    if (known === undefined) {
      this.#names.set(text, name);
      this.byName.set(name, response);
    }
    return { $ref: `#/components/responses/${name}` };
  }

  #newName(kind: string): string {
    let name = kind;
    for (let i = 2; this.byName.has(name); i++) name = `${kind}_${i}`;
    return name;
  }
}
