import { readFile } from 'node:fs/promises';

/** Where the system's resolver is configured. */
export const RESOLV_CONF = '/etc/resolv.conf';

/**
 * The full names that a name can stand for, in the order in which resolv.conf has them tried: a cluster resolves
 * `billing.shop` as `billing.shop.svc.cluster.local`.
 */
export async function fullNames(name: string, file = RESOLV_CONF): Promise<readonly string[]> {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const { search, ndots } = readSearch(await readFile(file, 'utf8').catch(() => ''));
  const longer = search.map((domain) => `${name}.${domain}`);
  const isFull = name.split('.').length - 1 >= ndots;
  return isFull ? [name, ...longer] : [...longer, name];
}

/** The search list of resolv.conf, of which the last line counts, and `ndots` (resolv.conf(5)). */
function readSearch(text: string): { readonly search: readonly string[]; readonly ndots: number } {
  let search: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === 'search') search = values;
    else if (keyword === 'domain') search = values.slice(0, 1);
    else if (keyword === 'options') {
      const given = values.find((value) => /^ndots:\d+$/.test(value));
      if (given !== undefined) ndots = Number(given.slice('ndots:'.length));
    }
  }
  return {
    search: search.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''),
    ndots,
  };
}
