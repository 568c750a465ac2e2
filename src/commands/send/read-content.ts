import { readFileSync } from 'node:fs';
import { misuse } from './misuse.ts';

/** The content of an option: its value itself, a file (`@file`) or standard input (`-`). Rejects with UsageError. */
export async function readContent(flag: string, value: string): Promise<Buffer> {
  if (value === '-') return Buffer.concat(await process.stdin.toArray());
  if (!value.startsWith('@')) return Buffer.from(value);
  try {
    return readFileSync(value.slice(1));
  } catch (error) {
    throw misuse(`${flag}: ${error instanceof Error ? error.message : error}`);
  }
}

/** The same, parsed as JSON. */
export async function readJson(flag: string, value: string): Promise<unknown> {
  const content = await readContent(flag, value);
  try {
    return JSON.parse(content.toString());
  } catch (error) {
    throw misuse(`${flag} is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}
