// Writes deploy/kubernetes/portico.yaml from the chart, for those who do not use Helm.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubernetesManifests } from './helm/kubernetes-manifests.ts';

const ROOT = join(import.meta.dirname, '..');

writeFileSync(join(ROOT, 'deploy/kubernetes/portico.yaml'), kubernetesManifests(ROOT));
