/**
 * What the first path segment selects (contract 4.2), and the methods that its shape takes
 * without and with a second segment.
 */
const RESOURCES: Readonly<Record<string, readonly [bare: string, withId: string]>> = {
  users: ['GET, HEAD, POST, OPTIONS', 'GET, HEAD, OPTIONS'],
  update: ['OPTIONS', 'PUT, OPTIONS'],
  delete: ['OPTIONS', 'DELETE, OPTIONS'],
};

/** What a request that matches no endpoint gets. */
export type Unrouted = { readonly kind: 'unknown' } | { readonly kind: 'empty'; readonly allow: string };

/**
 * Decides for a request target that no endpoint took: an unknown first segment is `unknown`
 * (contract 7), a known one gets the `empty` reply (contract 4.2, second rule) with the methods it would take.
 * A deeper path than the contract's shapes is no resource.
 */
export function unrouted(target: string): Unrouted {
  const path = target.split('?', 1)[0] ?? '/';
  const [, first = '', second = '', ...deeper] = decode(path).split('/');
  const resource = Object.hasOwn(RESOURCES, first) ? RESOURCES[first] : undefined;
  if (resource === undefined || deeper.some((segment) => segment !== '')) return { kind: 'unknown' };
  return { kind: 'empty', allow: second === '' ? resource[0] : resource[1] };
}

function decode(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
