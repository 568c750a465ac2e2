import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { kubernetesManifests } from '../../scripts/helm/kubernetes-manifests.ts';
import { renderChart } from '../../scripts/helm/render-chart.ts';
import { loadConfig } from '../../src/app/load-config.ts';
import { PRE_STOP_DELAY, Readiness } from '../../src/telemetry/health.ts';
import { type Manifest, readManifests, typeProblems } from '../support/kubernetes-types.ts';

const ROOT = join(import.meta.dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/portico');
/** Every branch of the templates. */
const ALL = {
  image: { tag: '1.2.3' },
  trustProxy: '10.0.0.0/8',
  env: [{ name: 'WEBHOOK_SECRET', valueFrom: { secretKeyRef: { name: 'portico', key: 'webhook' } } }],
  config:
    "import type { PorticoConfig } from 'portico';\nexport default { rest: {} } satisfies PorticoConfig;",
  podAnnotations: { 'prometheus.io/scrape': 'true' },
  nodeSelector: { 'kubernetes.io/arch': 'amd64' },
  tolerations: [{ key: 'spot', operator: 'Exists' }],
};
const plain = readManifests(renderChart(CHART, 'portico'));
const full = readManifests(renderChart(CHART, 'other', ALL));
const of = (all: readonly Manifest[], kind: string): Manifest => {
  const found = all.find((each) => each.kind === kind);
  assert.ok(found, kind);
  return found;
};

test('deploy/kubernetes is what the chart renders', () => {
  const written = readFileSync(join(ROOT, 'deploy/kubernetes/portico.yaml'), 'utf8');
  assert.equal(written, kubernetesManifests(ROOT), 'run "npm run docs"');
});

test('every manifest has the fields and types of the Kubernetes API, and unknown fields are found', async () => {
  assert.equal(await typeProblems([...plain, ...full]), '');
  const deployment = structuredClone(of(plain, 'Deployment'));
  deployment.spec.template.spec.containers[0].readynessProbe = {};
  deployment.spec.replicas = 'two';
  const problems = await typeProblems([deployment]);
  assert.match(problems, /readynessProbe/);
  assert.match(problems, /replicas|'string' is not assignable to type 'number'/);
});

test('all pods are as confined as the restricted standard asks, and more', () => {
  for (const kind of ['Deployment', 'Job']) {
    const pod = of(full, kind).spec.template.spec;
    assert.equal(pod.automountServiceAccountToken, false);
    assert.deepEqual(
      { ...pod.securityContext },
      {
        runAsNonRoot: true,
        runAsUser: 65532,
        runAsGroup: 65532,
        fsGroup: 65532,
        seccompProfile: { type: 'RuntimeDefault' },
      },
    );
    for (const container of pod.containers) {
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      assert.ok(container.resources.limits.memory);
      assert.doesNotMatch(container.image, /:latest$|:$/);
    }
  }
});

test('the grace period is longer than the pre-stop delay that the probes lead to and the rest of a stop', () => {
  const pod = of(plain, 'Deployment').spec.template.spec;
  const [{ readinessProbe, ports }] = pod.containers;
  const readiness = new Readiness();
  readiness.probed(0);
  readiness.probed(readinessProbe.periodSeconds * 1_000);
  const preStopDelay = readiness.preStopDelay(readinessProbe.periodSeconds * 1_000);
  assert.ok(preStopDelay < PRE_STOP_DELAY.max);
  // 10 s: when a stop that does not end is ended.
  assert.ok(pod.terminationGracePeriodSeconds * 1_000 > PRE_STOP_DELAY.max + 10_000);
  assert.ok(readinessProbe.periodSeconds * readinessProbe.failureThreshold * 1_000 < preStopDelay);
  const names = ports.map(({ name }: { name: string }) => name);
  assert.ok(names.includes(readinessProbe.httpGet.port));
});

test('labels, names and ports fit together', () => {
  for (const all of [plain, full]) {
    const { template, selector, replicas } = of(all, 'Deployment').spec;
    const has = (labels: object, wanted: object) => assert.deepEqual({ ...labels, ...wanted }, labels);
    has(template.metadata.labels, selector.matchLabels);
    has(template.metadata.labels, of(all, 'PodDisruptionBudget').spec.selector.matchLabels);
    assert.ok(of(all, 'PodDisruptionBudget').spec.maxUnavailable < replicas);
    for (const { spec } of all.filter(({ kind }) => kind === 'Service')) {
      has(template.metadata.labels, spec.selector);
      const names = template.spec.containers[0].ports.map(({ name }: { name: string }) => name);
      for (const { targetPort } of spec.ports) assert.ok(names.includes(targetPort), targetPort);
    }
    // No Service selects the Job's pod, and no budget counts it.
    const job = of(all, 'Job').spec.template.metadata.labels;
    assert.notEqual(job['app.kubernetes.io/name'], template.metadata.labels['app.kubernetes.io/name']);
  }
});

test('the service takes the variables that the Deployment sets, and the Job runs a command that there is', async () => {
  const [{ env }] = of(plain, 'Deployment').spec.template.spec.containers;
  const values = (env as readonly { name: string; value?: string }[]).map(
    ({ name, value }) => [name, value ?? 'postgres://portico@db/portico'] as const,
  );
  const { settings } = await loadConfig({ argv: [], env: Object.fromEntries(values), cwd: ROOT });
  assert.equal(settings['database.migrate'], false);
  assert.equal(settings['management.port'], 8080);
  assert.deepEqual(of(plain, 'Job').spec.template.spec.containers[0].args, ['migrate']);
});
