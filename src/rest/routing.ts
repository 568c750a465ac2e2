/**
 * What the first path segment selects (contract 4.2), and the methods that its shape takes
 * without and with a second segment.
 */
const RESOURCES: Readonly<Record<string, readonly [bare: string, withId: string]>> = {
  users: ['GET, HEAD, POST, OPTIONS', 'GET, HEAD, OPTIONS'],
  update: ['OPTIONS', 'PUT, OPTIONS'],
  delete: ['OPTIONS', 'DELETE, OPTIONS'],
};

/**
 * The methods that a request target would take which no endpoint took, as in Allow (contract 4.2, second rule); undefined
 * for an unknown first segment (contract 7). A deeper path than the contract's shapes is no resource.
 */
export function allowedAt(target: string): string | undefined {
  const path = target.split('?', 1)[0] ?? '/';
  const [, first = '', second = '', ...deeper] = decode(path).split('/');
  const resource = Object.hasOwn(RESOURCES, first) ? RESOURCES[first] : undefined;
  if (deeper.some((segment) => segment !== '')) return undefined;
  return second === '' ? resource?.[0] : resource?.[1];
}

function decode(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
