import type { PorticoConfig } from '../../../src/index.ts';

// The configuration module of the killed processes.
const config: PorticoConfig = {
  limits: { webhook: { lease: 500 } },
  webhook: {
    // An event whose process is killed again and again must not be given up.
    sending: { allowPrivate: true, attempts: 1_000_000, backoff: 20, maxBackoff: 200 },
  },
};

// biome-ignore lint/style/noDefaultExport: a configuration module has one
export default config;
