import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The package as it is published, in the folder `node_modules/portico` of an otherwise empty one. */
export interface BuiltPackage extends AsyncDisposable {
  /** The folder around node_modules. */
  readonly folder: string;
  readonly built: string;
}

/** A copy of the package that all files of a run share, or a new build; without its types unless a test needs them. */
export async function buildPackage({ types = false } = {}): Promise<BuiltPackage> {
  const folder = await temporaryFolder();
  const built = join(folder.path, 'node_modules/portico');
  await mkdir(join(folder.path, 'node_modules'));
  const shared = process.env.PORTICO_TEST_PACKAGE;
  if (shared !== undefined) await cp(shared, built, { recursive: true });
  else
    await run(process.execPath, [join(ROOT, 'scripts/build.ts'), built, ...(types ? [] : ['--when-stale'])]);
  return { folder: folder.path, built, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** The package as npm packs it. */
export interface PackedPackage extends AsyncDisposable {
  /** A folder with what the package is packed from. */
  readonly built: string;
  readonly tarball: string;
  /** Makes npm take packages from those of this checkout. */
  readonly env: NodeJS.ProcessEnv;
}

/** Builds and packs the package, and serves npm the packages of this checkout, without a network. */
export async function packPackage(): Promise<PackedPackage> {
  await using cleanup = new AsyncDisposableStack();
  const { built } = cleanup.use(await buildPackage({ types: true }));
  const { path } = cleanup.use(await temporaryFolder());
  const { url } = cleanup.use(await npmRegistry());
  const env = {
    npm_config_cache: join(path, 'cache'),
    npm_config_registry: url,
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  };
  const pack = ['pack', '--silent', '--pack-destination', path];
  await run('npm', pack, { cwd: built, env: { ...process.env, ...env } });
  const tarball = join(path, (await readdir(path)).find((name) => name.endsWith('.tgz')) ?? 'no tarball');
  // Each installation would decompress it twice.
  await writeFile(tarball, gunzipSync(await readFile(tarball)));
  const rest = cleanup.move();
  return {
    built,
    tarball,
    env,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** A registry on loopback that has the packages of this checkout and no others. */
interface NpmRegistry extends AsyncDisposable {
  readonly url: string;
}

/** The folders of the installed packages, by name. */
function installed(): ReadonlyMap<string, readonly string[]> {
  const lock: { packages: Record<string, unknown> } = JSON.parse(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
  );
  const paths = Object.keys(lock.packages).filter((path) => path.startsWith('node_modules/'));
  return Map.groupBy(paths, (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
}

/** A package as npm downloads it. */
interface Tarball {
  readonly bytes: Buffer;
  readonly integrity: string;
}

/** Packs an installed package. npm reads uncompressed archives too, which take less time on both sides. */
async function pack(folder: string): Promise<Tarball> {
  const words = ['-cf', '-', '--exclude=./node_modules', '--transform=s,^[.],package,', '-C', folder, '.'];
  const { stdout } = await run('tar', words, { encoding: 'buffer', maxBuffer: 2 ** 28 });
  return { bytes: stdout, integrity: `sha512-${createHash('sha512').update(stdout).digest('base64')}` };
}

/**
 * Answers npm with the package.json of each installed version, and with its files. The replies have what npm needs
 * to take them from its cache the next time.
 */
async function npmRegistry(): Promise<NpmRegistry> {
  const packages = installed();
  const packed = new Map<string, Promise<Tarball>>();
  const tarball = (folder: string) => {
    const made = packed.get(folder) ?? pack(join(ROOT, folder));
    packed.set(folder, made);
    return made;
  };
  const metadata = async (name: string, folders: readonly string[], host: string) => {
    const versions = await Promise.all(
      folders.map(async (folder) => {
        const manifest = readManifest(folder);
        if (manifest === undefined) return [];
        const { integrity } = await tarball(folder);
        const dist = { tarball: `http://${host}/tarball/${encodeURIComponent(folder)}`, integrity };
        return [[manifest.version, { ...manifest, dist }] as const];
      }),
    );
    const known = versions.flat();
    const latest = known.at(-1)?.[0];
    return JSON.stringify({ name, 'dist-tags': { latest }, versions: Object.fromEntries(known) });
  };
  const server: Server = createServer(async ({ url = '', headers: { host = '' } }, response) => {
    const path = decodeURIComponent(url).slice(1);
    if (path.startsWith('tarball/')) {
      response.end((await tarball(path.slice('tarball/'.length))).bytes);
      return;
    }
    const folders = packages.get(path);
    if (folders === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    response.setHeader('content-type', 'application/json');
    response.setHeader('cache-control', 'public, max-age=3600');
    response.end(await metadata(path, folders, host));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Undefined for a package of another platform, which is not installed. */
function readManifest(folder: string): { readonly version: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Uses every entry, has a delivery handled, and asks a schema that this program's own copy of GraphQL.js made. */
export const PROGRAM = `
import Fastify from 'fastify';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createService, defineConfig, loadConfig } from 'portico';
import { client } from 'portico/client';
import { openDatabase } from 'portico/database';
import { graphql } from 'portico/graphql';
import { management } from 'portico/management';
import { rest } from 'portico/rest';
import { backlogCheck, replayPlan, webhook } from 'portico/webhook';

for (const each of [client, createService, defineConfig, graphql, management, rest, backlogCheck, replayPlan]) {
  if (typeof each !== 'function') throw new Error('an entry misses something');
}
const database = await openDatabase('sqlite:inbox.db');
const app = Fastify();
app.addHook('onClose', () => database[Symbol.asyncDispose]());
const handled = Promise.withResolvers<unknown>();
app.register(webhook, { inbox: database.inbox, handlers: { e: ({ data }) => handled.resolve(data) } });
const query = new GraphQLObjectType({
  name: 'Query',
  fields: { own: { type: GraphQLString, resolve: () => 'own schema' } },
});
app.register(graphql, { schema: new GraphQLSchema({ query }) });
app.register(rest, { prefix: '/api', users: database.users });
app.register(management, {});
// The framework's compilers of schemas are its own, found from this package.
const schema = { querystring: { type: 'object', required: ['q'] } };
const reply = await app.inject({ method: 'POST', url: '/webhook', payload: { event: 'e', data: 'here' } });
console.log(reply.body, await handled.promise);
const asked = await app.inject({ method: 'POST', url: '/graphql', payload: { query: '{ own }' } });
console.log(asked.json().data.own);
const created = await app.inject({ method: 'POST', url: '/api/users', payload: { name: 'a', email: 'a@b.cd' } });
console.log(created.statusCode, (await app.inject('/api/users/1')).json().data.name);
console.log((await app.inject('/actuator/health')).json().status);
await app.close();

const config = await loadConfig({
  argv: [],
  env: { GRAPHQL_PORT: '0', REST_PORT: '0', MANAGEMENT_PORT: '0', PORT: '0', SHUTDOWN_PRE_STOP_DELAY: '0', LOG_LEVEL: 'silent' },
  cwd: process.cwd(),
});
const service = await createService(config);
service.doors.rest?.get('/checked', { schema }, () => 'fine');
const urls = await service.listen();
console.log((await fetch(urls.rest + '/checked')).status, (await fetch(urls.rest + '/checked?q=1')).status);
await service.stop();
`;

/** What it prints. */
export const PRINTED = 'Webhook received here\nown schema\n200 a\nUP\n400 200\n';
