import type { Random } from '../../support/random.ts';

/** A document as the parts of its operation and of its fragments, so that others can be bred from it. */
export interface DocumentParts {
  readonly operation: readonly string[];
  readonly fragments: readonly (readonly string[])[];
}

const MAX_PARTS = 30;

/** A random document for the built-in schema that asks for as much as it can. */
export function randomDocument(random: Random): DocumentParts {
  const parts = (count: number) => Array.from({ length: count }, () => part(random));
  return {
    operation: parts(1 + random.below(MAX_PARTS)),
    fragments: Array.from({ length: 3 }, () => parts(1 + random.below(4))),
  };
}

/** The same document with some of its parts changed, doubled or gone. */
export function changed({ operation, fragments }: DocumentParts, random: Random): DocumentParts {
  const change = (parts: readonly string[]) =>
    parts
      .flatMap((one) => {
        if (random.chance(0.8)) return [one];
        return random.pick([[], [one, one], [part(random)], [one, part(random)]]);
      })
      .slice(0, MAX_PARTS);
  return { operation: change(operation), fragments: fragments.map(change) };
}

/** The text; every field that may be merged with another one gets an alias of its own while there are any left. */
export function textOf({ operation, fragments }: DocumentParts): string {
  let aliases = 0;
  const named = (parts: readonly string[]) =>
    parts.join(' ').replaceAll('$', () => (aliases < 30 ? `a${aliases++}:` : ''));
  const definitions = fragments.map((parts, i) => `fragment F${i} on Query{hello ${named(parts)}}`);
  const used = definitions.map((_, i) => `...F${i}`).join(' ');
  return `{hello ${named(operation)} ${used}} ${definitions.join(' ')}`;
}

/** A field of the root type; `$` stands where an alias may be. */
function part(random: Random): string {
  return random.pick([
    () => `$users{${leaves(random)}}`,
    () => `$users{${leaves(random)}}`,
    () => `users{${leaves(random)}}`,
    () => `$user(id:"${1 + random.below(1_000)}"){${leaves(random)}}`,
    () => `...on Query{$users{...on User{${leaves(random)}}}}`,
    () => '$__schema{types{name description fields{name description args{name} type{name ofType{name}}}}}',
    () => `$__type(name:"User"){fields{name type{name}}}`,
    () => `$hello${' @include(if:true)'.repeat(random.below(5))}`,
  ])();
}

function leaves(random: Random): string {
  const leaf = () => random.pick(['id', 'name', 'email', '__typename', '$name', '$email @skip(if:false)']);
  return Array.from({ length: 1 + random.below(random.chance(0.1) ? 60 : 5) }, leaf).join(' ');
}
