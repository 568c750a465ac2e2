import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript5';
import { temporaryFolder } from '../temporary-folder.ts';
import { describeExports } from './exports.ts';

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2024,
  lib: ['lib.es2024.d.ts'],
  types: [],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  exactOptionalPropertyTypes: true,
};

const ENTRY = `import type { Inner, Options } from './inner.d.ts';
/** What it opens. */
export interface Opened<T = string> { readonly inner: Inner; next(): Promise<Inner | undefined>; value?: T }
export declare class Store { #hidden; private own; constructor(options?: Options); get size(): number }
export declare function open(options: Options): Opened;
`;
const INNER = `export interface Options { readonly path?: string; readonly mode: Mode; on(event: 'a' | 'b'): void }
type Mode = 'read' | 'write';
/** Names itself. */
export interface Inner { readonly id: number; readonly parts: readonly Inner[]; readonly kind: Mode | undefined }
`;

/** The description of a package with one entry, of these files. */
async function described(files: Readonly<Record<string, string>>): Promise<string> {
  await using folder = await temporaryFolder();
  const rootNames = Object.keys(files).map((file) => join(folder.path, file));
  await mkdir(join(folder.path, 'deep'));
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder.path, file), text);
  const program = ts.createProgram({ rootNames, options: OPTIONS });
  return describeExports(program, [{ name: 'made-up', file: join(folder.path, 'index.d.ts') }]);
}

const before = await described({ 'index.d.ts': ENTRY, 'inner.d.ts': INNER });

test('everything that an entry exports is written out, and what is behind it where it comes first', () => {
  assert.equal(
    before,
    `# made-up

type Opened<T = string> = {
  readonly inner: {
    readonly id: number
    readonly kind: 'read' | 'write' | undefined
    readonly parts: readonly (see Opened.inner)[]
  }
  next(): Promise<see Opened.inner | undefined>
  value?: T
}

class Store {
  constructor(options?: {
    readonly mode: 'read' | 'write'
    on(event: 'a' | 'b'): void
    readonly path?: string
  })
  readonly size: number
}

function open(options: see new Store(options)): Opened`,
  );
});

test('where inner types stand, what they are called, their order and comments make no difference', async () => {
  const moved = {
    'z.d.ts': `import type { Node } from './deep/node.d.ts';
export type Way = 'write' | 'read';
export interface Settings { on(event: 'b' | 'a'): void; /** Which one. */ readonly mode: Way; readonly path?: string }
export interface Returned<T = string> { value?: T; readonly inner: Node; next(): Promise<undefined | Node> }
`,
    'deep/node.d.ts': `import type { Way } from '../z.d.ts';
export type Node = { readonly kind: undefined | Way; readonly parts: ReadonlyArray<Node>; readonly id: number };
`,
    'index.d.ts': `import type { Settings } from './z.d.ts';
export declare function open(options: Settings): Opened;
export declare class Store { get size(): number; constructor(options?: Settings); private other; #hidden }
export type { Returned as Opened } from './z.d.ts';
import type { Returned as Opened } from './z.d.ts';
`,
  };
  assert.equal(await described(moved), before);
});

test('a type that the compiler does not find is a mistake', async () => {
  await assert.rejects(described({ 'index.d.ts': ENTRY }), /Opened\.inner .*not found/);
});

for (const [change, from, to] of [
  ['a member of another type', 'readonly id: number', 'readonly id: string'],
  ['a member that may be absent', 'readonly mode: Mode', 'readonly mode?: Mode'],
  ['a member that may be undefined', 'readonly path?: string', 'readonly path?: string | undefined'],
  ['a member that can be written', 'readonly kind', 'kind'],
  ['one choice more', "'read' | 'write'", "'read' | 'write' | 'both'"],
  ['a parameter that is needed', 'constructor(options?: Options)', 'constructor(options: Options)'],
  ['another result', 'open(options: Options): Opened;', 'open(options: Options): Promise<Opened>;'],
  ['another default of a type', 'Opened<T = string>', 'Opened<T = number>'],
  ['one export more', 'export declare class', 'export declare const LIMIT: 5;\nexport declare class'],
  ['one member less', 'next(): Promise<Inner | undefined>; ', ''],
] as const) {
  test(`it is another surface with ${change}`, async () => {
    assert.ok(`${ENTRY}${INNER}`.includes(from));
    assert.notEqual(
      await described({ 'index.d.ts': ENTRY.replace(from, to), 'inner.d.ts': INNER.replace(from, to) }),
      before,
    );
  });
}
