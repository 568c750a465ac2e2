import type { GraphQLResolveInfo } from 'graphql';
import { type Context, laterIn } from './moods.ts';

/** A value of an object type, whose properties are what fields without a resolver find. */
export class Thing {
  readonly #kind: string | undefined;
  readonly ownText = 'text';
  readonly ownNumber = 5;
  readonly ownNone = null;
  readonly ownError = new Error('a secret of the thing');
  readonly ownList = ['a', null, 3];

  constructor(kind: string | undefined) {
    this.#kind = kind;
  }

  /** The name of its type; undefined for what is no thing. */
  static kindOf(value: unknown): string | undefined {
    return value instanceof Thing ? value.#kind : undefined;
  }

  get ownThrows(): string {
    throw new Error(`a secret of ${this.#kind}`);
  }

  get ownChild(): Thing {
    return new Thing('Alpha');
  }

  ownCall({ size }: { readonly size: number }): string {
    return `${this.#kind}${size}`;
  }

  ownLater(_args: unknown, { schedule }: Context, info: GraphQLResolveInfo): Promise<string | undefined> {
    return laterIn(schedule, info)(() => this.#kind);
  }
}
