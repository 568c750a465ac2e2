import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { HttpRequest } from '../load/load.ts';
import type { Workbench } from '../workbench.ts';
import { startPeer } from './peer.ts';
import { type PorticoOptions, startPortico } from './portico.ts';
import type { Server } from './server.ts';
import { sqliteDriver } from './sqlite-driver.ts';

/** Starts Portico's REST door with this number of users on disk. */
export async function startPorticoUsers(
  bench: Workbench,
  users: number,
  options: PorticoOptions = {},
): Promise<Server> {
  const server = await startPortico(bench, 'rest', options);
  fill(join(server.folder, 'portico.db'), users);
  return server;
}

/** Starts a peer with this number of users on disk, in a file like Portico's. */
export async function startUsersPeer(
  bench: Workbench,
  name: 'express-users' | 'express-lists' | 'fastify-users',
  users: number,
): Promise<Server> {
  const server = await startPeer(bench, name, { env: { SQLITE: sqliteDriver(bench.node).name } });
  fill(join(server.folder, 'users.db'), users);
  return server;
}

/** Starts Portico, Express and, unless the run is quick, Fastify with the same users. */
export async function startUsersServers(
  bench: Workbench,
  users: number,
): Promise<Readonly<Record<string, Server>>> {
  return {
    Portico: await startPorticoUsers(bench, users),
    Express: await startUsersPeer(bench, 'express-users', users),
    ...(bench.pace.quick ? {} : { Fastify: await startUsersPeer(bench, 'fastify-users', users) }),
  };
}

/** One request for each user up to this id. */
export function userRequests(
  users: number,
  headers: Readonly<Record<string, string>> = {},
): readonly HttpRequest[] {
  return Array.from({ length: users }, (_, i) => ({ method: 'GET', path: `/users/${i + 1}`, headers }));
}

/** Inserts users up to this id into the table that a server has created. */
export function fill(file: string, users: number): void {
  const db = new DatabaseSync(file, { timeout: 20_000 });
  db.exec('PRAGMA synchronous=OFF');
  db.exec(`WITH RECURSIVE ids (id) AS (
      SELECT coalesce(max(id), 0) + 1 FROM users UNION ALL SELECT id + 1 FROM ids WHERE id < ${users})
    INSERT INTO users (id, name, email)
    SELECT id, 'User ' || id, 'user' || id || '@example.com' FROM ids WHERE id <= ${users}`);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}
