import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const FOLDER = join(import.meta.dirname, '../../build/postgres');
const WORDS = ['--no-sync', '--no-locale', '--encoding=UTF8', '--username=portico', '--auth=trust'];
const run = promisify(execFile);

/** The user that PostgreSQL runs as; default that of the test. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface Cluster {
  readonly initdb: string;
  /** The server that it is for, in its own place: of another one initdb makes something else. */
  readonly server: string;
  readonly asUser: ServerUser | undefined;
}

/** Fills `data`, an empty folder. What initdb makes is kept: a copy of it costs a tenth of the time. */
export async function fillCluster(data: string, { initdb, server, asUser }: Cluster): Promise<void> {
  const { size, mtimeMs } = statSync(server);
  const made = createHash('sha256').update(JSON.stringify([server, size, mtimeMs, asUser, WORDS]));
  const template = join(FOLDER, made.digest('hex').slice(0, 16));
  if (existsSync(template)) return copy(template, data);
  await run(initdb, ['-D', data, ...WORDS], { cwd: '/', ...asUser });
  const draft = `${template}.${randomUUID()}`;
  await mkdir(FOLDER, { recursive: true });
  await mkdir(draft, { mode: 0o700 });
  await copy(data, draft);
  // Whole at once, and of no use when another test process was faster.
  await rename(draft, template).catch(() => rm(draft, { recursive: true }));
}

/** With its owners and modes. */
async function copy(from: string, to: string): Promise<void> {
  await run('cp', ['-a', `${from}/.`, to]);
}
