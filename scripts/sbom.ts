import type { BundledPackage } from './license-notices.ts';
import type { Manifest } from './package-manifest.ts';

/** The parts of package-lock.json that are read here. */
export interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

/**
 * The bill of materials of the built package in CycloneDX: each bundled package once, with the hash of its
 * tarball from the lock file. It contains no time, so that the same sources give the same bill.
 */
export function sbom(manifest: Manifest, bundled: readonly BundledPackage[], lock: Lock): object {
  const own = { name: String(manifest.name), version: String(manifest.version), license: 'MIT' };
  const components = new Map(bundled.map((each) => [purlOf(each), componentOf(each, lock)]));
  const names = [...components.keys()].sort();
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...componentOf(own, lock), type: 'application' } },
    components: names.map((name) => components.get(name)),
    dependencies: [{ ref: purlOf(own), dependsOn: names }],
  };
}

function purlOf({ name, version }: BundledPackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function componentOf(each: BundledPackage, lock: Lock) {
  const { name, version, license } = each;
  const [, group, base = name] = /^(@[^/]+)\/(.+)$/.exec(name) ?? [];
  const integrity = integrityOf(each, lock);
  return {
    type: 'library',
    'bom-ref': purlOf(each),
    ...(group === undefined ? {} : { group }),
    name: base,
    version,
    ...(integrity === undefined ? {} : { hashes: [{ alg: 'SHA-512', content: integrity }] }),
    licenses: [/ /.test(license) ? named(license) : { license: { id: license } }],
    purl: purlOf(each),
  };
}

/** An SPDX expression, or the licence as the package words it. */
function named(license: string) {
  return / (?:OR|AND|WITH) /.test(license) ? { expression: license } : { license: { name: license } };
}

/** The SHA-512 of a package's tarball, in hexadecimal. */
function integrityOf({ name, version }: BundledPackage, { packages }: Lock): string | undefined {
  const found = Object.entries(packages).find(
    ([path, entry]) => path.endsWith(`node_modules/${name}`) && entry.version === version,
  );
  const [, digest] = /^sha512-(\S+)/.exec(found?.[1].integrity ?? '') ?? [];
  return digest === undefined ? undefined : Buffer.from(digest, 'base64').toString('hex');
}
