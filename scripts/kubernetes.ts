// Writes deploy/kubernetes/portico.yaml from the chart, for users without Helm.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubernetesManifests } from './helm/kubernetes-manifests.ts';

const ROOT = join(import.meta.dirname, '..');

writeFileSync(join(ROOT, 'deploy/kubernetes/portico.yaml'), kubernetesManifests(ROOT));
