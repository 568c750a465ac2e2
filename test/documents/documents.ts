import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** One document of the project. */
export interface Document {
  /** From the root of the project. */
  readonly path: string;
  readonly text: string;
}

/** A fenced block of a document, without its indentation. */
export interface Block {
  readonly path: string;
  /** Of its first line, from 1. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
}

/** Every document but those that others wrote. */
export function documents(): readonly Document[] {
  return globSync(
    ['*.md', 'docs/**/*.md', 'examples/**/*.md', 'deploy/**/*.md', 'packages/*/*.md', 'bench/peers/*.md'],
    { cwd: ROOT },
  )
    .map((path) => path.replaceAll('\\', '/'))
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

/** The blocks of these languages in all documents. */
export function blocks(...languages: readonly string[]): readonly Block[] {
  return documents().flatMap(({ path, text }) =>
    [...text.matchAll(/^( *)```(\w+)\n(.*?)^ *```$/gms)]
      .filter(([, , language = '']) => languages.includes(language))
      .map(({ index, 1: indent = '', 2: language = '', 3: content = '' }) => ({
        path,
        line: text.slice(0, index).split('\n').length + 1,
        language,
        text: content.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      })),
  );
}
