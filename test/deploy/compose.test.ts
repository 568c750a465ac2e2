import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../src/app/load-config.ts';
import { OwnHosts } from '../../src/core/addresses.ts';
import { PRE_STOP_DELAY } from '../../src/telemetry/health.ts';

const FOLDER = join(import.meta.dirname, '../../deploy/compose');
const read = (name: string) => parse(readFileSync(join(FOLDER, name), 'utf8'));
const compose = read('compose.yaml');

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly security_opt: readonly string[];
}
const services = Object.entries(compose.services as Readonly<Record<string, Service>>);

test('every service has a pinned image, no new privileges and ports on loopback alone', () => {
  assert.deepEqual(
    services.map(([name]) => name),
    ['portico', 'postgres', 'prometheus', 'grafana'],
  );
  for (const [name, { image, ports = [], security_opt }] of services) {
    if (name !== 'portico') assert.match(image, /:v?\d+\.\d/, name);
    assert.deepEqual(security_opt, ['no-new-privileges:true'], name);
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/, name);
  }
});

test('what is mounted and named exists', () => {
  const named = Object.keys(compose.volumes);
  for (const [, { volumes = [] }] of services) {
    for (const volume of volumes) {
      const [source = ''] = volume.split(':');
      // The folder of the dashboard is mounted as a whole.
      if (source === '../grafana') continue;
      assert.ok(source.startsWith('.') ? existsSync(join(FOLDER, source)) : named.includes(source), volume);
    }
  }
  const { build } = compose.services.portico;
  assert.ok(existsSync(join(FOLDER, build.context, build.dockerfile)));
});

test('no secret is written down, and no service starts without its own', () => {
  const text = readFileSync(join(FOLDER, 'compose.yaml'), 'utf8');
  for (const [, value = ''] of text.matchAll(/PASSWORD: (.*)$/gm)) assert.match(value, /^\$\{\w+:\?/);
  assert.match(compose.services.portico.environment.DATABASE_URL, /:\$\{POSTGRES_PASSWORD:\?/);
});

test('Portico takes its variables, has a read-only root and is given the time of a stop', async () => {
  const { environment, read_only, cap_drop, stop_grace_period } = compose.services.portico;
  const url = environment.DATABASE_URL.replace(/\$\{[^}]*\}/, 'secret');
  await loadConfig({ argv: [], env: { ...environment, DATABASE_URL: url }, cwd: FOLDER });
  assert.deepEqual([read_only, cap_drop], [true, ['ALL']]);
  assert.ok(Number.parseInt(stop_grace_period, 10) * 1_000 > PRE_STOP_DELAY.max + 10_000);
});

test('Prometheus scrapes what Portico exposes, and Grafana asks that Prometheus', () => {
  const [job] = read('../prometheus/prometheus.yml').scrape_configs;
  assert.deepEqual(
    [job.metrics_path, job.static_configs[0].targets],
    ['/actuator/prometheus', ['portico:8080']],
  );
  assert.match(compose.services.portico.environment.MANAGEMENT_INCLUDE, /\bprometheus\b/);
  assert.equal(read('grafana-datasources.yaml').datasources[0].url, 'http://prometheus:9090');
  const [provider] = read('grafana-dashboards.yaml').providers;
  const mounts: readonly string[] = compose.services.grafana.volumes;
  assert.ok(mounts.some((mount) => mount === `../grafana:${provider.options.path}:ro`));
});

const noPromtool = spawnSync('promtool', ['--version']).error && 'promtool is not installed';
test('promtool takes the configuration', { skip: noPromtool ?? false }, () => {
  const { status, stderr } = spawnSync(
    'promtool',
    ['check', 'config', join(FOLDER, '../prometheus/prometheus.yml')],
    {
      encoding: 'utf8',
    },
  );
  assert.equal(status, 0, stderr);
});

test('Prometheus asks Portico by a name that it takes', () => {
  const prometheus = parse(readFileSync(join(FOLDER, '../prometheus/prometheus.yml'), 'utf8'));
  const targets: readonly string[] = prometheus.scrape_configs.flatMap(
    ({ static_configs: configs }: { static_configs: readonly { targets: readonly string[] }[] }) =>
      configs.flatMap(({ targets: found }) => found),
  );
  const own = new OwnHosts(compose.services.portico.environment.HTTP_HOSTS.split(','), 'all');
  assert.ok(targets.length > 0);
  for (const target of targets) assert.ok(own.has(target), target);
});
