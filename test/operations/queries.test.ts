import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { seriesNames } from '../../scripts/ops/meter-table.ts';
import { listMeters } from '../../scripts/ops/meters.ts';
import { type Prometheus, prometheusMissing, startPrometheus } from '../support/prometheus.ts';
import { ALERTS, alertNames } from './alerts.ts';
import { startEverything } from './everything-service.ts';

interface Panel {
  readonly targets?: readonly { readonly expr: string }[];
  readonly panels?: readonly Panel[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

const TEXT = readFileSync(join(import.meta.dirname, '../../deploy/grafana/portico.json'), 'utf8');
const skip = prometheusMissing();

/** The series names in a query: what a selector follows. */
const namesIn = (expr: string) => [...expr.matchAll(/([a-z_:][a-z0-9_:]*)\{/g)].map(([, name = '']) => name);

function queriesOf(panels: readonly Panel[]): readonly string[] {
  return panels.flatMap(({ targets = [], panels: inside = [] }) => [
    ...targets.map(({ expr }) => expr),
    ...queriesOf(inside),
  ]);
}

/** A query as Grafana sends it for all instances. */
const filledIn = (expr: string) =>
  expr.replaceAll(/\$(?:job|instance)\b/g, '.*').replaceAll('$__rate_interval', '10s');

async function knownNames(prometheus: Prometheus): Promise<ReadonlySet<string>> {
  return new Set((await prometheus.api('label/__name__/values')) as readonly string[]);
}

test('the dashboard shows every meter', {
  skip: process.platform !== 'linux' && 'has all meters on Linux',
}, async () => {
  const shown = new Set(namesIn(TEXT.replaceAll('\\"', '"')));
  for (const meter of await listMeters()) {
    assert.ok(
      seriesNames(meter).some((name) => shown.has(name)),
      `${meter.name} is on the dashboard`,
    );
  }
});

test('every query of the dashboard and of the alerts finds series of a service', {
  skip: skip || (process.platform !== 'linux' && 'has all meters on Linux'),
}, async () => {
  await using service = await startEverything();
  await service.work();
  await service.overflow();
  for (const name of ['database_backups_seconds_count', 'meters_overflow_total']) await service.scraped(name);
  await using prometheus = await startPrometheus({ portico: service.scrapeUrl }, [ALERTS]);
  await service.work();

  const dashboard = JSON.parse(TEXT) as Dashboard;
  const queries = [...queriesOf(dashboard.panels), ...dashboard.annotations.list.map(({ expr }) => expr)];
  assert.ok(queries.length > 60);
  // The service has an SQLite file.
  const ofReplica = (await listMeters()).filter(({ needs }) => needs === '`DATABASE_READ_URL`');
  const absent = new Set(ofReplica.flatMap(seriesNames));
  for (const query of queries.filter((each) => !namesIn(each).every((name) => absent.has(name)))) {
    // What an alert or a mark asks of a value may be false.
    const [left = ''] = filledIn(query).split(' > ');
    await prometheus.find(left);
  }
  const known = await knownNames(prometheus);
  for (const { definition } of dashboard.templating.list) {
    for (const name of namesIn(definition ?? '')) assert.ok(known.has(name), name);
  }

  const { groups } = (await prometheus.api('rules')) as {
    readonly groups: readonly {
      readonly rules: readonly { readonly name: string; readonly query: string }[];
    }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  assert.deepEqual(rules.map(({ name }) => name).toSorted(), alertNames().toSorted());
  for (const { name, query } of rules) {
    const names = namesIn(query);
    assert.ok(names.length > 0, name);
    for (const each of names) assert.ok(known.has(each), `${name} asks for ${each}`);
  }
});
