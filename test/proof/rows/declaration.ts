import type { PorticoConfig } from '../../../src/index.ts';

/** The relations that proofs write to: a serial key with a unique, and a composite key with a reference. */
export const relations = {
  authors: { columns: { name: { type: 'text', max: 60, unique: true }, n: { type: 'bigint' } } },
  loans: {
    key: ['author_id', 'reader'],
    columns: {
      author: { type: 'reference', to: 'authors', onDelete: 'cascade' },
      reader: { type: 'text', max: 60 },
      n: { type: 'bigint' },
    },
  },
} satisfies PorticoConfig['relations'];

// biome-ignore lint/style/noDefaultExport: it is also the configuration module of proofs without handlers
export default { relations } satisfies PorticoConfig;
