import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { documentOf, startDescribed } from './described-service.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A client in the types of the document; what it must not allow is marked. */
const CLIENT = `import type { components, operations, paths } from './api.d.ts';

type Json<R> = R extends { content: { 'application/json': infer B } } ? B : never;
type Reply<P extends keyof paths> = paths[P] extends { get: { responses: { 200: infer R } } } ? Json<R> : never;
type NewUser = components['schemas']['NewUser'];

export async function read<P extends keyof paths>(base: string, path: P): Promise<Reply<P>> {
  return (await (await fetch(base + path, { headers: { accept: 'application/json' } })).json()) as Reply<P>;
}

export async function create(base: string, user: NewUser): Promise<string> {
  const method: keyof paths['/users'] & 'post' = 'post';
  const reply = await fetch(base + '/users', { method, body: JSON.stringify(user) });
  const { message } = (await reply.json()) as Json<operations['createUser']['responses'][200]>;
  return message;
}

export async function namesOf(base: string): Promise<readonly string[]> {
  return (await read(base, '/users')).data.map(({ id, name }) => \`\${id satisfies number | undefined} \${name}\`);
}

export async function statusOf(base: string): Promise<'UP' | 'DOWN' | 'OUT_OF_SERVICE' | 'UNKNOWN'> {
  return (await read(base, '/actuator/health')).status;
}

// @ts-expect-error
void ((base: string) => read(base, '/nothing'));
// @ts-expect-error
void ((base: string) => create(base, { name: 'x' }));
`;

/** openapi-typescript prints by the compiler's own API, which TypeScript 7 has no more. */
function withCompilerApi(): Disposable {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      next(
        specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/') === true
          ? 'typescript5'
          : specifier,
        context,
      ),
  });
  return { [Symbol.dispose]: () => hooks.deregister() };
}

test('a client that is generated from the document compiles, and works', async () => {
  await using service = await startDescribed();
  await using folder = await temporaryFolder();
  using _api = withCompilerApi();
  const { astToString, default: generate } = await import('openapi-typescript');
  const types = astToString(await generate(JSON.stringify(await documentOf(service))));
  writeFileSync(join(folder.path, 'api.d.ts'), types);
  writeFileSync(join(folder.path, 'client.ts'), CLIENT);
  writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}');
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  const flags =
    '--noEmit --strict --target esnext --module nodenext --allowImportingTsExtensions --types node';
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags.split(' '), 'client.ts'];
  await promisify(execFile)(process.execPath, tsc, { cwd: folder.path }).catch(({ stdout }) => {
    assert.fail(stdout);
  });

  const client = await import(pathToFileURL(join(folder.path, 'client.ts')).href);
  const { rest, management } = service.urls;
  const cy = { name: 'Cy', email: 'cy@x' };
  assert.equal(await client.create(rest, cy), 'User created successfully');
  assert.deepEqual(await client.namesOf(rest), ['1 Ada', '2 Bob', '3 Cy']);
  assert.equal(await client.statusOf(management), 'UP');
});
