import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { memoryUse } from '../machine/process-use.ts';
import { range } from '../measure/figures.ts';
import { median } from '../measure/statistics.ts';
import { compareTransfers, exportedLines, importLines } from '../measure/transfers.ts';
import type { Row } from '../row.ts';
import { AUTHORS, type Engine, startBookServers } from '../servers/books.ts';
import { buildPackage, startPortico } from '../servers/portico.ts';
import type { Server } from '../servers/server.ts';

const EDITIONS = 100_000;
const COUNT = EDITIONS.toLocaleString('en-US');

const PEERS: Readonly<Record<Engine, string>> = {
  sqlite: 'Express with better-sqlite3 inserts line by line, 2,000 in a transaction, which is synced.',
  postgres: 'Fastify with pg inserts 2,000 lines with one statement.',
};

type Moved = (server: Server, round: number) => Promise<number>;

const imported: Moved = ({ origin }, round) => importLines(`${origin}/editions`, editions(round));
const exported: Moved = ({ origin }) => exportedLines(`${origin}/editions`);

/** An import that checks references and a unique, and the export of the same rows, on both engines. */
export const relationTransfers: readonly Row[] = (['sqlite', 'postgres'] as const).flatMap(
  (engine): Row[] => {
    const suffix = engine === 'sqlite' ? '' : '-postgres';
    const on = engine === 'sqlite' ? 'on SQLite' : 'on PostgreSQL';
    const row = (name: string, title: string, about: string, ask: Moved, atLeast: number): Row => ({
      name: `${name}${suffix}`,
      title: `${title}, ${on}`,
      about,
      async run(bench) {
        const { portico, peer, peerLabel } = await startBookServers(bench, engine, 1);
        const servers = { Portico: portico, [peerLabel]: peer };
        if (ask === exported) for (const server of Object.values(servers)) await imported(server, 0);
        return compareTransfers(bench, {
          file: `${name}${suffix}`,
          title: `${title}, ${on}`,
          items: 'rows',
          count: EDITIONS,
          servers,
          transfer: ask,
          atLeast,
          growthAtMost: 100,
        });
      },
    });
    return [
      row(
        'relation-import',
        `Relations: an import of ${COUNT} rows`,
        `POST of ${COUNT} lines of NDJSON with two references and a unique, one client, a report with the totals. Portico also records each row as an event. ${PEERS[engine]}`,
        imported,
        engine === 'sqlite' ? 1 : 0.8,
      ),
      row(
        'relation-export',
        `Relations: an export of ${COUNT} rows`,
        `GET of ${COUNT} rows as NDJSON, one client. Both read 1,000 rows at a time as the client takes them.`,
        exported,
        1,
      ),
    ];
  },
);

/** The lines of a round, whose numbers no other round has. */
function* editions(round: number): Generator<string> {
  for (let i = 0; i < EDITIONS; i++) {
    const isbn = String((round + 1) * EDITIONS + i).padStart(13, '0');
    yield `{"isbn":"${isbn}","title":"An edition with the number ${i}","pages":${1 + (i % 900)},"price":"${i % 1_000}.50","published":"2024-02-29","author_id":${1 + (i % AUTHORS)},"publisher_id":${1 + (i % 2)}}\n`;
  }
}

const RELATIONS = 50;

/** What relations cost a start. */
export const relationStart: Row = {
  name: 'relation-start',
  title: `Relations: a start with ${RELATIONS}`,
  about: `Time from the start of the process to the first answer of the REST door, and memory a second later, with ${RELATIONS} relations of six columns and two references, whose tables exist, and without a declaration. Portico is the built package.`,
  async run(bench) {
    const main = join(buildPackage(bench), 'bin/portico.js');
    const folders = { none: bench.folder(), many: bench.folder() };
    writeFileSync(join(folders.many, 'portico.config.json'), JSON.stringify({ relations: manyRelations() }));
    const starts = { none: [] as Start[], many: [] as Start[] };
    const kinds = Object.keys(starts) as (keyof typeof starts)[];
    for (let round = -1; round < (bench.pace.quick ? 2 : 7); round++) {
      for (const kind of round % 2 === 0 ? kinds : kinds.toReversed()) {
        bench.say(`start ${round + 2}: ${kind}`);
        const server = await startPortico(bench, 'rest', { folder: folders[kind], main });
        const seen = await observe(server);
        // The first start makes the tables and fills the caches.
        if (round >= 0) starts[kind].push(seen);
      }
    }
    const of = (kind: keyof typeof starts, key: keyof Start) => starts[kind].map((each) => each[key]);
    const more = (key: keyof Start) => median(of('many', key)) - median(of('none', key));
    return {
      tables: [
        {
          head: ['', 'first answer ms', 'lowest-highest', 'idle MB'],
          lines: kinds.map((kind) => [
            kind === 'none' ? 'no declaration' : `${RELATIONS} relations`,
            median(of(kind, 'firstAnswer')).toFixed(0),
            range(of(kind, 'firstAnswer')),
            median(of(kind, 'idle')).toFixed(1),
          ]),
        },
      ],
      findings: [
        {
          what: `${RELATIONS} relations: later first answer`,
          value: more('firstAnswer'),
          unit: 'ms',
          target: { atMost: 60 },
        },
        {
          what: `${RELATIONS} relations: more memory`,
          value: more('idle'),
          unit: 'MB',
          target: { atMost: 8 },
        },
      ],
      plots: [],
      notes: [],
    };
  },
};

interface Start {
  readonly firstAnswer: number;
  readonly idle: number;
}

async function observe(server: Server): Promise<Start> {
  const asked = performance.now();
  const reply = await fetch(`${server.origin}/users/1`);
  await reply.arrayBuffer();
  const firstAnswer = server.listeningAfter + performance.now() - asked;
  await delay(1_000);
  const idle = memoryUse(server.pid)?.now ?? Number.NaN;
  await server.stop();
  return { firstAnswer, idle };
}

function manyRelations(): object {
  const columns = {
    code: { type: 'text', max: 20, unique: true },
    amount: { type: 'decimal', precision: 10, scale: 2 },
    made: { type: 'timestamp', default: 'now' },
    note: { type: 'text', max: 400, nullable: true },
    first: { type: 'reference', to: 'r0s', inverse: '' },
    second: { type: 'reference', to: 'r1s', inverse: '' },
  };
  return Object.fromEntries(
    Array.from({ length: RELATIONS }, (_, i) => [
      `r${i}s`,
      {
        columns: {
          ...columns,
          first: { ...columns.first, inverse: `firsts${i}` },
          second: { ...columns.second, inverse: `seconds${i}` },
        },
        indexes: [['made'], ['amount']],
      },
    ]),
  );
}
