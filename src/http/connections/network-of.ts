/**
 * What counts as one client among addresses: an IPv4 address, or the first 64 bits of an IPv6 one, of which a client
 * has all others. Empty for none, as a socket that is closed has.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined || !address.includes(':') || address.includes('.')) return address ?? '';
  const [before = '', after] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = before.split(':');
  if (after !== undefined) {
    const missing = 8 - groups.length - (after === '' ? 0 : after.split(':').length);
    groups.push(...Array.from({ length: Math.max(missing, 0) }, () => '0'), ...after.split(':'));
  }
  return groups
    .slice(0, 4)
    .map((group) => group || '0')
    .join(':');
}
