import pg from 'pg';
import type { StoreContent } from '../../test/proof/kill/ledger.ts';
import { readStore, type StoredJob } from '../../test/proof/kill/store-reader.ts';
import { readContent, readJobs } from '../../test/proof/replicas/store.ts';

/** Reads the database during or after the run. */
export interface Store {
  content(): Promise<StoreContent>;
  jobs(): Promise<readonly StoredJob[]>;
  openJobs(): Promise<number>;
  /** Rejects unless the file is intact. */
  check(): Promise<void>;
}

export function sqliteStore(file: string): Store {
  const using = async <T>(work: (store: ReturnType<typeof readStore>) => T) => {
    using store = readStore(file);
    return work(store);
  };
  return {
    content: () => using((store) => store.content()),
    jobs: () => using((store) => store.jobs()),
    openJobs: () => using((store) => store.openJobs()),
    check: () => using((store) => store.checkIntegrity()),
  };
}

export function postgresStore(url: string): Store {
  const sql = async (text: string) => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows;
    } finally {
      await client.end();
    }
  };
  return {
    content: () => readContent(sql),
    jobs: () => readJobs(sql),
    openJobs: async () => Number((await sql(`SELECT count(*) FROM jobs WHERE status = 'open'`))[0]?.[0]),
    check: async () => {},
  };
}
