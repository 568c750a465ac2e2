import { request } from 'node:http';
import { join } from 'node:path';
import type { HttpRequest } from '../load/load.ts';
import { memoryUse, resetPeak } from '../machine/process-use.ts';
import { compare, type Measured, valuesOf } from '../measure/compare.ts';
import { grouped } from '../measure/figures.ts';
import { median } from '../measure/statistics.ts';
import type { Finding, Row } from '../row.ts';
import { fill, startPorticoUsers } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';

/** Number of random ids to read, so that the reads touch pages all over the file. */
const SAMPLES = 5_000;

/** Number of users above which a tenth of the list takes long enough to be timed. */
const LONG = 1_000_000;

interface Size {
  readonly users: number;
  readonly reads: Measured;
  readonly list: ListRead;
}

interface ListRead {
  readonly usersPerSecond: number;
  /** Duration of the list's last tenth relative to its second; NaN if the list is too short. */
  readonly lastToSecond: number;
  /** Peak memory of the server meanwhile, in megabytes. */
  readonly memory: number;
}

export const growth: Row = {
  name: 'growth',
  title: 'Growth',
  about:
    'Reads of random users (64 connections), and the whole list read once by one client, while the database grows. ' +
    'Portico reads the list page by page, so the time of its last tenth over that of its second one shows whether page N costs what page 1 costs.',
  async run(bench) {
    const sizes = bench.pace.quick ? [1e3, 1e5] : [1e3, 1e4, 1e5, 1e6, 1e7];
    const server = await startPorticoUsers(bench, 1);
    const found: Size[] = [];
    for (const users of sizes) {
      bench.say(`filling up to ${users.toLocaleString('en-US')} users`);
      fill(join(server.folder, 'portico.db'), users);
      const label = `${users.toLocaleString('en-US')} users`;
      const [reads] = await compare(bench, [{ label, server, requests: randomReads(users) }], {
        connections: 64,
      });
      if (reads === undefined) throw new Error('nothing was measured');
      bench.say(`reading the list of ${label}`);
      if (found.length === 0) await readList(server, users);
      found.push({ users, reads, list: await readList(server, users) });
    }
    return {
      tables: [
        {
          head: [
            '',
            'reads/s',
            'p50 ms',
            'p99 ms',
            'list, users/s',
            'last tenth / second',
            'memory of list MB',
          ],
          lines: found.map(({ reads, list }) => [
            reads.label,
            grouped(median(valuesOf(reads, 'perSecond'))),
            median(valuesOf(reads, 'p50')).toFixed(2),
            median(valuesOf(reads, 'p99')).toFixed(2),
            grouped(list.usersPerSecond),
            Number.isNaN(list.lastToSecond) ? '' : list.lastToSecond.toFixed(2),
            list.memory.toFixed(0),
          ]),
        },
      ],
      findings: findingsOf(found),
      plots: [
        {
          kind: 'lines',
          file: 'growth-reads',
          title: 'Reads of random users',
          unit: 'reads/s',
          x: { label: 'users', values: sizes },
          lines: [
            { label: 'reads/s', values: found.map(({ reads }) => median(valuesOf(reads, 'perSecond'))) },
          ],
        },
        {
          kind: 'lines',
          file: 'growth-memory',
          title: 'Memory while the whole list is read',
          unit: 'MB',
          x: { label: 'users', values: sizes },
          lines: [{ label: 'MB', values: found.map(({ list }) => list.memory) }],
        },
      ],
      notes: [],
    };
  },
};

function findingsOf(found: readonly Size[]): readonly Finding[] {
  const first = found[0];
  const last = found.at(-1);
  if (first === undefined || last === undefined) throw new Error('nothing was measured');
  const perSecond = ({ reads }: Size) => median(valuesOf(reads, 'perSecond'));
  return [
    {
      what: `reads/s with ${last.reads.label} / with ${first.reads.label}`,
      value: perSecond(last) / perSecond(first),
      unit: 'x',
      target: { atLeast: 0.8 },
    },
    ...(Number.isNaN(last.list.lastToSecond) ? [] : [pageFinding(last)]),
    {
      what: `memory for the list of ${last.reads.label} / of ${first.reads.label}`,
      value: last.list.memory / first.list.memory,
      unit: 'x',
    },
  ];
}

function pageFinding({ reads, list }: Size): Finding {
  return {
    what: `last tenth / second tenth of the list of ${reads.label}, time`,
    value: list.lastToSecond,
    unit: 'x',
    target: { atMost: 1.25 },
  };
}

function randomReads(users: number): readonly HttpRequest[] {
  return Array.from({ length: SAMPLES }, () => ({
    method: 'GET',
    path: `/users/${1 + Math.floor(Math.random() * users)}`,
  }));
}

/** Reads the whole list, and counts users by their opening braces. */
async function readList({ pid, origin }: Server, users: number): Promise<ListRead> {
  resetPeak(pid);
  const begin = performance.now();
  /** The times at which each tenth was complete. */
  const tenths: number[] = [];
  let count = 0;
  await new Promise<void>((resolve, reject) => {
    request(`${origin}/users`, (response) => {
      response.on('data', (chunk: Buffer) => {
        // Each user has one opening brace; the envelope has one more.
        for (let at = chunk.indexOf('{'); at !== -1; at = chunk.indexOf('{', at + 1)) count++;
        while (tenths.length < 10 && count - 1 >= (users * (tenths.length + 1)) / 10) {
          tenths.push(performance.now() - begin);
        }
      });
      response.on('end', resolve).on('error', reject);
    })
      .on('error', reject)
      .end();
  });
  if (count - 1 !== users) throw new Error(`the list has ${count - 1} of ${users} users`);
  const at = (index: number) => tenths[index] ?? Number.NaN;
  return {
    usersPerSecond: users / (at(9) / 1_000),
    lastToSecond: users < LONG ? Number.NaN : (at(9) - at(8)) / (at(1) - at(0)),
    memory: memoryUse(pid)?.peak ?? Number.NaN,
  };
}
