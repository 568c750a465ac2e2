const SEVERAL = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^/?#@]+)(?<rest>.*)$/s;

/**
 * The URLs of the servers that a database URL names, in its order: `postgres://user@one:5432,two:5433/db` names two.
 * Any other URL names one.
 */
export function serverUrls(url: string): readonly string[] {
  const { scheme, user = '', hosts, rest } = SEVERAL.exec(url)?.groups ?? {};
  if (hosts === undefined) return [url];
  return hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`);
}
