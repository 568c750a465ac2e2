import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { moduleFiles } from '../config/module.ts';
import { PACKAGE_ROOT, readPackageInfo } from '../core/package-root.ts';
import { shellWord } from '../core/text.ts';
import { readArguments } from './arguments.ts';
import { type Command, type CommandIo, YES_OPTION } from './command.ts';
import { projectFiles, projectName } from './project-files.ts';
import { confirmed, note, print } from './terminal.ts';

/**
 * The module imports only a type, which Node removes, so it runs even where no package is installed, and
 * whatever package.json says.
 */
const MODULE = `// Settings and code of this service; "portico help serve" lists all settings.
import type { PorticoConfig } from 'portico';

export default {
  management: {
    // GET /actuator/health. 0 is healthy; any other number shows as the code of what is wrong.
    healthChecks: { example: async () => 0 },
    // GET /actuator/motd
    endpoints: [{ id: 'motd', read: () => 'Be kind.' }],
  },
  webhook: {
    handlers: {
      // portico send --event new_commit --data '{"sha":"c0ffee"}'
      new_commit: async (delivery, { log }) => log.info({ data: delivery.data }, 'commit'),
    },
  },
} satisfies PorticoConfig;
`;

/**
 * `portico init`. Resolves to the exit code: 0, or 1 when the user declined. Overwrites nothing. Rejects with
 * UsageError if the folder has a configuration module.
 */
export const init: Command = {
  usage: {
    topic: 'init',
    words: '[folder] [options]',
    maxWords: 1,
    about:
      'Writes a project into a folder, the current one by default: portico.config.mts with a handler, a health check ' +
      'and an endpoint, a package.json that depends on this package, a test, .gitignore, Dockerfile, compose.yaml and ' +
      'a unit of systemd. Where a package.json is, it writes portico.config.mts alone. It overwrites nothing.',
    options: {
      '--package': 'Also writes the other files where a package.json is.',
      ...YES_OPTION,
    },
    examples: ['portico init my-service --yes', 'portico init --yes'],
    standalone: true,
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(init.usage, argv, io);
  const folder = resolve(args.words[0] ?? '.');
  const [present] = moduleFiles(folder);
  if (present !== undefined) throw args.misuse(`${present} is already there; nothing was written`);
  const isProject = args.has('--package') || !existsSync(join(folder, 'package.json'));
  const names = isProject ? 'a project' : 'portico.config.mts';
  const never = new AbortController().signal;
  if (!args.has('--yes') && !(await confirmed(io, `Write ${names} into ${folder}?`, never))) return 1;
  mkdirSync(folder, { recursive: true });
  await write(io, join(folder, 'portico.config.mts'), MODULE);
  if (!isProject) {
    note(
      io,
      'Start the service there with "portico", or "npx portico" where the package is installed in the folder.',
    );
    return 0;
  }
  const { name } = readPackageInfo();
  const from = packageSource(realpathSync(folder));
  // The project is complete with it, so that an image can be built from the folder.
  const tarball = /^file:.*\.tgz$/.test(from) ? basename(from) : undefined;
  if (tarball !== undefined) await copy(io, join(folder, from.slice('file:'.length)), join(folder, tarball));
  const source = tarball === undefined ? from : `file:${tarball}`;
  const files = projectFiles({
    name: projectName(basename(folder)),
    dependency: [name, source],
    tarball,
    node: NODE_VERSION,
  });
  let isNew = false;
  for (const [file, text] of Object.entries(files)) {
    const isWritten = await write(io, join(folder, file), text);
    if (file === 'package.json') isNew = isWritten;
  }
  note(
    io,
    isNew
      ? `It takes ${name} from ${source}. Run "npm install" and then "npm start" there, or "npm test".`
      : `Run "npm install ${shellWord(`${name}@${source}`)}" and then "npx portico" there.`,
  );
  return 0;
}

/** The version of Node that images of projects have. */
const NODE_VERSION = '26.10.0';

/** Copies a file unless there is one. */
async function copy(io: CommandIo, from: string, to: string): Promise<void> {
  await unlessThere(io, to, () => copyFileSync(from, to, constants.COPYFILE_EXCL));
}

/** Writes a file unless it exists; resolves to whether it wrote it. */
function write(io: CommandIo, path: string, text: string): Promise<boolean> {
  return unlessThere(io, path, () => writeFileSync(path, text, { flag: 'wx' }));
}

async function unlessThere(io: CommandIo, path: string, make: () => void): Promise<boolean> {
  try {
    make();
    await print(io, `${path} written.\n`);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await print(io, `${path} is already there and stays as it is.\n`);
    return false;
  }
}

/**
 * The source from which npm can install this package for a project in `folder`: the tarball, registry or
 * repository it came from. After a global installation, or in a checkout, the folder of the running package,
 * which npm links.
 */
function packageSource(folder: string): string {
  const root = fileURLToPath(PACKAGE_ROOT);
  const local = (path: string) => `file:${relative(folder, path).replaceAll(sep, '/')}`;
  const installed = installedFrom(root);
  if (installed === undefined) return local(root);
  if (!installed.startsWith('file:')) {
    // A tarball of a registry stands for its version; any other URL is the source itself.
    return /\/-\/[^/]+\.tgz$/.test(installed) ? `^${readPackageInfo().version}` : installed;
  }
  const tarball = resolve(dirname(dirname(root)), installed.slice('file:'.length));
  return statSync(tarball, { throwIfNoEntry: false })?.isFile() ? local(tarball) : local(root);
}

/** The source that npm has recorded for the package in `root`; undefined if there is no record. */
function installedFrom(root: string): string | undefined {
  const modules = dirname(root);
  if (basename(modules) !== 'node_modules') return undefined;
  try {
    const lock: unknown = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'));
    const { packages } = Object(lock) as { readonly packages?: unknown };
    const noted: unknown = Object(Object(packages)[`node_modules/${basename(root)}`]).resolved;
    return typeof noted === 'string' && noted !== '' ? noted : undefined;
  } catch {
    return undefined;
  }
}
