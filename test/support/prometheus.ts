import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

/** Why Prometheus cannot run here, or false. */
export function prometheusMissing(): string | false {
  try {
    for (const command of ['prometheus', 'promtool'])
      execFileSync(command, ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'needs prometheus and promtool (Debian package prometheus)';
  }
}

/** What `promtool check metrics` says of a text: nothing when all is well, be it an error or a matter of style. */
export function promtoolFindings(text: string): string {
  const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  });
  return status === 0 ? stdout + stderr : `exit ${status}: ${stdout}${stderr}`;
}

/** One series of a query's result. */
export interface QueryResult {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A Prometheus server of its own, scraping every second, with its data in a folder that goes with it. */
export interface Prometheus extends AsyncDisposable {
  query(promql: string): Promise<readonly QueryResult[]>;
  /** The first result of a query that finds something. */
  find(promql: string): Promise<QueryResult>;
  /** What any of its pages answers as JSON. */
  api(path: string): Promise<unknown>;
}

/**
 * Starts Prometheus with the URLs that it scrapes, by the names of their jobs, and files of rules; waits until it has
 * scraped each URL.
 */
export async function startPrometheus(
  targets: Readonly<Record<string, string>>,
  rules: readonly string[] = [],
): Promise<Prometheus> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  const config = join(folder, 'prometheus.json');
  // JSON is YAML.
  await writeFile(
    config,
    JSON.stringify({ global: { scrape_interval: '1s' }, rule_files: rules, scrape_configs: jobs(targets) }),
  );
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const closed = once(child, 'close');
  cleanup.defer(async () => {
    child.kill('SIGTERM');
    await closed;
  });

  async function api(path: string): Promise<unknown> {
    const response = await fetch(`http://${address}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { readonly data?: unknown; readonly error?: string };
    if (error !== undefined) throw new Error(`${path}: ${error}`);
    return data;
  }
  async function query(promql: string): Promise<readonly QueryResult[]> {
    const { result } = (await api(`query?query=${encodeURIComponent(promql)}`)) as {
      readonly result: readonly { metric: Record<string, string>; value: readonly [number, string] }[];
    };
    return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }

  await waitFor(
    'Prometheus to scrape',
    async () => {
      if (child.exitCode !== null) throw new Error(`prometheus ended: ${said}`);
      const scraped = await query('scrape_samples_scraped').catch(() => []);
      return scraped.length === Object.keys(targets).length;
    },
    60_000,
  );
  const rest = cleanup.move();
  return {
    api,
    query,
    find: (promql) => waitFor(`a result of ${promql}`, async () => (await query(promql))[0], 60_000),
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

function jobs(targets: Readonly<Record<string, string>>) {
  return Object.entries(targets).map(([job_name, url]) => {
    const { host, pathname } = new URL(url);
    return { job_name, metrics_path: pathname, static_configs: [{ targets: [host] }] };
  });
}
