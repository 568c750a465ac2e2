/** A reply as it came: everything in it that could tell something. */
export interface Seen {
  readonly what: string;
  readonly status: number;
  readonly text: string;
}

type Links = Readonly<Record<string, { readonly href: string; readonly templated: boolean }>>;

const ACCEPTS = [
  '*/*',
  'application/json',
  'text/plain',
  'text/html',
  'application/openmetrics-text;version=1.0.0',
];

/**
 * Reads every endpoint that the discovery page links to, in every media type, and every part of each that
 * its own reply names. What `skip` names is left out.
 */
export async function crawl(
  base: string,
  headers: Readonly<Record<string, string>>,
  skip: ReadonlySet<string>,
): Promise<readonly Seen[]> {
  const seen: Seen[] = [];
  const read = async (url: string, accept = '*/*', method = 'GET') => {
    const response = await fetch(url, { method, headers: { ...headers, accept } });
    const text = `${JSON.stringify([...response.headers])}\n${await response.text()}`;
    seen.push({ what: `${method} ${url} as ${accept}`, status: response.status, text });
    return text.slice(text.indexOf('\n') + 1);
  };
  const { _links } = JSON.parse(await read(base)) as { _links: Links };
  const names = Object.keys(_links).filter((name) => !skip.has(name));
  for (const accept of ACCEPTS) await read(base, accept);
  for (const name of names) {
    const { href, templated } = _links[name] ?? { href: '', templated: true };
    if (!templated) for (const accept of ACCEPTS) await read(href, accept);
    if (!templated) for (const method of ['HEAD', 'OPTIONS', 'PUT']) await read(href, '*/*', method);
  }
  for (const path of partsOf(names, new Map(seen.map(({ what, text }) => [what, text])), base))
    await read(path);
  return seen;
}

/** The parts that the replies name: every property, meter, logger, component and prefix. */
function partsOf(
  names: readonly string[],
  replies: ReadonlyMap<string, string>,
  base: string,
): readonly string[] {
  const json = (id: string): Record<string, unknown> => {
    const text = replies.get(`GET ${base}/${id} as */*`);
    return text === undefined ? {} : JSON.parse(text.slice(text.indexOf('\n') + 1));
  };
  const keys = (value: unknown) => Object.keys(Object(value));
  const sources = (json('env').propertySources ?? []) as readonly { readonly properties: object }[];
  const parts: Readonly<Record<string, readonly string[]>> = {
    env: sources.flatMap(({ properties }) => keys(properties)),
    metrics: (json('metrics').names ?? []) as readonly string[],
    loggers: keys(json('loggers').loggers),
    health: [...keys(json('health').components), ...((json('health').groups ?? []) as readonly string[])],
    configprops: ['rest', 'webhook', 'database', 'management'],
  };
  const shown = Object.entries(parts).filter(([id]) => names.includes(id));
  return shown.flatMap(([id, each]) => [
    `${base}/${id}/no-such-part`,
    ...each.map((part) => `${base}/${id}/${encodeURIComponent(part)}`),
  ]);
}
