import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { prometheusMissing } from '../support/prometheus.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { CASES } from './alert-cases.ts';
import { ALERTS, alertNames } from './alerts.ts';

const skip = prometheusMissing();
const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/OPERATIONS.md'), 'utf8');

test('promtool takes the rules and the configuration', { skip }, () => {
  execFileSync('promtool', ['check', 'rules', ALERTS]);
  execFileSync('promtool', ['check', 'config', join(dirname(ALERTS), 'prometheus.yml')]);
});

test('each alert has a severity, says what is wrong and what to do, and leads to its section of the guide', () => {
  const rules = readFileSync(ALERTS, 'utf8')
    .split(/^ +- alert: /m)
    .slice(1);
  assert.ok(rules.length > 20);
  const sections = new Set([...GUIDE.matchAll(/^#+ (\w+)$/gm)].map(([, title = '']) => title.toLowerCase()));
  for (const rule of rules) {
    assert.match(rule, /labels: \{ severity: (?:critical|warning|info) \}/);
    assert.match(rule, /summary: .+\n +description: .+/);
    const [, anchor = ''] = /runbook_url: docs\/OPERATIONS\.md#(\S+)/.exec(rule) ?? [];
    assert.equal(anchor, rule.slice(0, rule.indexOf('\n')).toLowerCase());
    assert.ok(sections.has(anchor), `docs/OPERATIONS.md has a section ${anchor}`);
  }
});

test('each alert fires when it should, and stays quiet when things are close to that', { skip }, async () => {
  assert.deepEqual(Object.keys(CASES).toSorted(), alertNames().toSorted());
  // The series of all alerts together, because each test of promtool evaluates all rules.
  const tests = (['fires', 'quiet'] as const).map((kind) => {
    const series = Object.values(CASES).flatMap((each) => Object.entries(each[kind]));
    assert.equal(new Set(series.map(([key]) => key)).size, series.length, 'each series is of one alert');
    return {
      name: kind,
      interval: '1m',
      input_series: series.map(([key, values]) => ({ series: key, values })),
      promql_expr_test: Object.keys(CASES).map((name) => ({
        expr: `count(ALERTS{alertname="${name}",alertstate="firing"}) or vector(0)`,
        eval_time: '1h',
        exp_samples: [{ labels: '{}', value: kind === 'fires' ? 1 : 0 }],
      })),
    };
  });
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'tests.json');
  // JSON is YAML.
  await writeFile(file, JSON.stringify({ rule_files: [ALERTS], evaluation_interval: '1m', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});
