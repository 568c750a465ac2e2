/** The parts of package.json that the build reads. */
export interface Manifest {
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** The packages that a program which imports Portico must share with it. */
const SHARED = ['fastify', 'graphql'];

/** The source files of the exports. */
export function entriesOf({ exports }: Manifest): readonly string[] {
  return Object.values(exports).filter((path) => path.endsWith('.ts'));
}

/** The package.json of the built package. */
export function packageManifest(root: Manifest): Manifest {
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _dev,
    allowScripts: _allow,
    overrides: _overrides,
    ...kept
  } = root;
  const dependencies = Object.entries(root.dependencies);
  const isShared = ([name]: readonly [string, string]) => SHARED.includes(name);
  const exports = Object.entries(root.exports).map(([name, path]) => [name, builtEntry(path)]);
  return {
    ...kept,
    // The sources run on any Node that npm supports, because they install their own; the package does not.
    engines: { node: '>=24' },
    exports: Object.fromEntries(exports),
    dependencies: Object.fromEntries(dependencies.filter((each) => !isShared(each))),
    peerDependencies: {
      ...root.peerDependencies,
      ...Object.fromEntries(dependencies.filter(isShared).map(([name, version]) => [name, `^${version}`])),
    },
    files: [
      ...['bin', 'src', 'types', 'build', 'portico.schema.json'],
      ...['CHANGELOG.md', 'THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json'],
    ],
  };
}

function builtEntry(path: string) {
  if (!path.endsWith('.ts')) return path;
  const name = path.slice(0, -'.ts'.length);
  return { types: `${name.replace('./', './types/')}.d.ts`, default: `${name}.js` };
}
