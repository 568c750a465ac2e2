import { join } from 'node:path';
import { renderChart } from './render-chart.ts';

const HEAD = `# Written from deploy/helm/portico by "npm run docs". The Secret "portico" with the key "database-url" is yours to create:
#   kubectl create secret generic portico --from-literal=database-url=postgres://user:password@host/database
`;

/** The chart with its default values, as input for `kubectl apply`. */
export function kubernetesManifests(root: string): string {
  return HEAD + renderChart(join(root, 'deploy/helm/portico'), 'portico');
}
