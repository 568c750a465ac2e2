import type { LookupAddress } from 'node:dns';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';

/** The hosts file of the system. */
export const HOSTS_FILE =
  process.platform === 'win32'
    ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32\\drivers\\etc\\hosts')
    : '/etc/hosts';

/** RFC 6761: these names are this machine's, whatever the hosts file says or does not say. */
const LOCALHOST = /^(?:.+\.)?localhost$/;
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** The addresses that the hosts file gives a name, in its order; `localhost` always has some. */
export async function inHostsFile(name: string, file = HOSTS_FILE): Promise<readonly LookupAddress[]> {
  const wanted = name.toLowerCase();
  const text = await readFile(file, 'utf8').catch(() => '');
  const found: LookupAddress[] = [];
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family !== 0 && names.some((each) => each.toLowerCase() === wanted)) found.push({ address, family });
  }
  return found.length === 0 && LOCALHOST.test(wanted) ? LOOPBACK : found;
}
