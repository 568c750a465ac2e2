import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpRequest, LoadResult } from '../load/load.ts';
import { type Contender, compare, contendersOf, MANY_ROUNDS, type Measured } from '../measure/compare.ts';
import { p99Findings, rateFinding } from '../measure/comparison.ts';
import { range } from '../measure/figures.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { median } from '../measure/statistics.ts';
import { ratePlot, summarise } from '../measure/summary.ts';
import type { Finding, Row, Table } from '../row.ts';
import { startGoWebhook } from '../servers/go-webhook.ts';
import { startPeer } from '../servers/peer.ts';
import { startPortico } from '../servers/portico.ts';
import type { Server } from '../servers/server.ts';
import type { Workbench } from '../workbench.ts';

const delivery = (event: string): readonly HttpRequest[] => [
  {
    method: 'POST',
    path: '/webhook',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ event, data: { id: 'in_1', amount: 4200, customer: 'cus_1' } }),
  },
];
const PLAIN = delivery('invoice.paid');
/** An event handled by the contract's own handler, which logs. */
const HANDLED = delivery('payment_received');
const HANDLER = 'with a handler';
/**
 * The targets of acknowledgements with handlers: the minimum rate relative to Express, and the maximum p99
 * relative to both.
 */
const RATE = 1.2;
const HANDLED_P99 = 1.5;

export const webhook: Row = {
  name: 'webhook',
  title: 'Webhook: acknowledgements',
  about:
    `POST \`/webhook\` of ${PLAIN[0]?.body?.length} bytes, 64 connections, ${MANY_ROUNDS.rounds} rounds of ${MANY_ROUNDS.seconds} s. Portico answers when the delivery is synced to the disk; Express ` +
    'parses it and stores nothing. "With a handler" the event has one, which runs after the answer on the same core; what ' +
    'is left of the backlog is handled before the next round begins. All are measured bound to one core, and not bound, where the thread that writes to ' +
    "the disk can have a core of its own. ETags and X-Powered-By of Express are off, except in the variant with its defaults. Debian's `webhook` (Go) must start a program for each delivery, here `/bin/true`.",
  async run(bench) {
    const { name, title } = this;
    const bound = await compareAll(bench, 'Portico', { Express: await startPeer(bench, 'express-receiver') });
    const onAllCores = { onAllCores: true };
    const free = bench.pace.quick
      ? undefined
      : await compareAll(
          bench,
          'Portico, not bound',
          {
            'Express, not bound': await startPeer(bench, 'express-receiver', onAllCores),
            'Express with its defaults, not bound': await startPeer(bench, 'express-receiver', {
              ...onAllCores,
              env: { AS_IT_COMES: '1' },
            }),
          },
          onAllCores,
        );
    const others = bench.pace.quick ? { measured: [], notes: [] } : await goAlone(bench);
    const all = [...bound.measured, ...(free?.measured ?? []), ...others.measured];
    // The target refers to the faster Express; the other one shows what its defaults cost.
    const results = [
      ...(free === undefined ? [] : [{ ...free, express: 'Express, not bound', alone: [], notes: [] }]),
      { ...bound, express: 'Express', alone: others.measured, notes: others.notes },
    ].map(({ measured, handling, express, alone, notes }) => {
      const targets = { rate: { [express]: RATE }, p99: 1 };
      const result = summarise({ measured: [...measured, ...alone], targets, name, title, notes });
      return {
        tables: [...result.tables, handling],
        findings: [...result.findings, ...handledFindings(measured, express)],
        notes: result.notes,
      };
    });
    return {
      tables: results.flatMap(({ tables }) => tables),
      findings: results.flatMap(({ findings }) => findings),
      plots: [ratePlot(all, name, title)],
      notes: results.flatMap(({ notes }) => notes),
    };
  },
};

interface Compared {
  readonly measured: readonly Measured[];
  /** The handling of the acknowledged deliveries. */
  readonly handling: Table;
}

/** Compares Portico, without and with a handler, with peers that give the same answers. */
async function compareAll(
  bench: Workbench,
  label: string,
  peers: Readonly<Record<string, Server>>,
  options: { readonly onAllCores?: boolean } = {},
): Promise<Compared> {
  const portico = await startPortico(bench, 'webhook', options);
  const handling = new Handling(await startPortico(bench, 'webhook', options));
  await checkSameAnswers({ [label]: portico, ...peers }, PLAIN);
  const handled: Contender = {
    label: `${label}, ${HANDLER}`,
    server: handling.server,
    requests: HANDLED,
    settle: (load) => handling.settle(load),
  };
  const [first, ...others] = contendersOf({ [label]: portico, ...peers }, PLAIN);
  const contenders = first === undefined ? [] : [first, handled, ...others];
  const measured = await compare(bench, contenders, {
    connections: 64,
    ...(bench.pace.quick ? {} : MANY_ROUNDS),
  });
  return { measured, handling: handling.table(handled.label) };
}

/** Findings about acknowledgements with handlers, relative to those without and to Express. */
function handledFindings(measured: readonly Measured[], express: string): readonly Finding[] {
  const [plain, handled] = measured;
  const peer = measured.find(({ label }) => label === express);
  if (plain === undefined || handled === undefined || peer === undefined) return [];
  return [
    rateFinding(handled, peer, { atLeast: RATE }),
    ...p99Findings(handled, [peer], HANDLED_P99),
    ...p99Findings(handled, [plain], HANDLED_P99),
  ];
}

/** Observes in the database how a server handles what it has acknowledged. */
class Handling {
  readonly server: Server;
  #handled = 0;
  readonly #during: number[] = [];
  readonly #left: number[] = [];
  readonly #after: number[] = [];

  constructor(server: Server) {
    this.server = server;
  }

  /** Waits until the backlog is handled. */
  async settle({ requests, perSecond }: LoadResult): Promise<void> {
    using db = new DatabaseSync(join(this.server.folder, 'portico.db'), { readOnly: true, timeout: 5_000 });
    const jobs = db.prepare(
      "SELECT coalesce(max(seq), 0) AS stored, (SELECT count(*) FROM jobs WHERE status = 'open') AS open FROM jobs",
    );
    const read = () => jobs.get() as { readonly stored: number; readonly open: number };
    const began = performance.now();
    const { stored, open } = read();
    const seconds = requests / perSecond;
    this.#during.push((stored - open - this.#handled) / seconds);
    this.#left.push(open);
    while (read().open > 0) await delay(5);
    // A short one says nothing.
    if (open > perSecond / 10) this.#after.push((open / (performance.now() - began)) * 1_000);
    this.#handled = stored;
  }

  table(label: string): Table {
    const whole = (value: number) => Math.round(value).toLocaleString('en-US');
    const cells = (all: readonly number[]) =>
      all.length === 0 ? ['-', '-'] : [whole(median(all)), range(all, whole)];
    return {
      head: [
        'handling',
        'jobs/s under load',
        'lowest-highest',
        'backlog then',
        'lowest-highest',
        'jobs/s after it',
        'lowest-highest',
      ],
      lines: [[label, ...cells(this.#during), ...cells(this.#left), ...cells(this.#after)]],
    };
  }
}

interface Others {
  readonly measured: readonly Measured[];
  readonly notes: readonly string[];
}

/** It keeps working after its round, on the core of the others, so it is measured alone, at the end. */
async function goAlone(bench: Workbench): Promise<Others> {
  const go = await startGoWebhook(bench);
  if (go === undefined) {
    return { measured: [], notes: ['`webhook` (Debian package) is not installed, so it was left out.'] };
  }
  try {
    const contender = { label: 'webhook (Go)', server: go, requests: PLAIN };
    return { measured: await compare(bench, [contender], { connections: 64, ...MANY_ROUNDS }), notes: [] };
  } catch (error) {
    // Processes of earlier rounds may keep it busy.
    return { measured: [], notes: [`\`webhook\` (Go) was left out: ${(error as Error).message}.`] };
  }
}
