import { readFileSync } from 'node:fs';
import { UsageError } from '../usage-error.ts';
import { sendUsage } from './usage.ts';

/** What an option says outright, as `@file`, or as `-` for standard input. Rejects with UsageError. */
export async function readContent(flag: string, value: string): Promise<Buffer> {
  if (value === '-') return Buffer.concat(await process.stdin.toArray());
  if (!value.startsWith('@')) return Buffer.from(value);
  try {
    return readFileSync(value.slice(1));
  } catch (error) {
    throw new UsageError([`${flag}: ${error instanceof Error ? error.message : error}`], sendUsage.topic);
  }
}

/** The same, as JSON. */
export async function readJson(flag: string, value: string): Promise<unknown> {
  const content = await readContent(flag, value);
  try {
    return JSON.parse(content.toString());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError([`${flag} is no JSON: ${reason}`], sendUsage.topic);
  }
}
