import { readPackageInfo } from '../core/package-root.ts';
import { print } from './terminal.ts';

/** `portico version` and `--version`. */
export async function versionCommand(): Promise<number> {
  await print(`${readPackageInfo().version}\n`);
  return 0;
}
