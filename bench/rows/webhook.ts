import type { HttpRequest } from '../load/load.ts';
import { compare, contendersOf, MANY_ROUNDS, type Measured } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { ratePlot, summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
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
/** An event with a handler, which runs after the answer on the same core. */
const HANDLED = delivery('payment_received');

const FREE = 'Portico, not bound';
const EXPRESS_FREE = 'Express, not bound';
const DEFAULTS = 'Express with its defaults, not bound';

export const webhook: Row = {
  name: 'webhook',
  title: 'Webhook: acknowledgements',
  about:
    `POST \`/webhook\` of ${PLAIN[0]?.body?.length} bytes, 64 connections, ${MANY_ROUNDS.rounds} rounds of ${MANY_ROUNDS.seconds} s. Portico answers when the delivery is synced to the disk; Express ` +
    'parses it and stores nothing. Both are measured bound to one core, and not bound, where the thread that writes to ' +
    "the disk can have a core of its own. ETags and X-Powered-By of Express are off, except in the variant with its defaults. Debian's `webhook` (Go) must start a program for each delivery, here `/bin/true`.",
  async run(bench) {
    const bound = await compareAll(bench, {
      Portico: await startPortico(bench, 'webhook'),
      Express: await startPeer(bench, 'express-receiver'),
    });
    const free = bench.pace.quick
      ? []
      : await compareAll(bench, {
          [FREE]: await startPortico(bench, 'webhook', { onAllCores: true }),
          [EXPRESS_FREE]: await startPeer(bench, 'express-receiver', { onAllCores: true }),
          [DEFAULTS]: await startPeer(bench, 'express-receiver', {
            onAllCores: true,
            env: { AS_IT_COMES: '1' },
          }),
        });
    const others = bench.pace.quick ? { measured: [], notes: [] } : await othersAlone(bench);
    const { name, title } = this;
    const onOneCore = summarise({
      measured: [...bound, ...others.measured],
      targets: { rate: { Express: 1.2 }, p99: 1 },
      notes: others.notes,
      name,
      title,
    });
    const plots = [ratePlot([...bound, ...free, ...others.measured], name, title)];
    if (free.length === 0) return { ...onOneCore, plots };
    // The target is the faster Express; the other one shows what its defaults cost.
    const targets = { rate: { [EXPRESS_FREE]: 1.2 }, p99: 1 };
    const onAllCores = summarise({ measured: free, targets, name, title });
    return {
      tables: [...onAllCores.tables, ...onOneCore.tables],
      findings: [...onAllCores.findings, ...onOneCore.findings],
      plots,
      notes: [...onAllCores.notes, ...onOneCore.notes],
    };
  },
};

/** Compares servers that give the same answers. */
async function compareAll(
  bench: Workbench,
  servers: Readonly<Record<string, Server>>,
): Promise<readonly Measured[]> {
  await checkSameAnswers(servers, PLAIN);
  return compare(bench, contendersOf(servers, PLAIN), {
    connections: 64,
    ...(bench.pace.quick ? {} : MANY_ROUNDS),
  });
}

interface Others {
  readonly measured: readonly Measured[];
  readonly notes: readonly string[];
}

/** Servers that go on working after their round, on the core of the others: each is measured alone, at the end. */
async function othersAlone(bench: Workbench): Promise<Others> {
  const alone = (label: string, server: Server, requests: readonly HttpRequest[]) =>
    compare(bench, [{ label, server, requests }], { connections: 64, ...MANY_ROUNDS });
  const handling = await startPortico(bench, 'webhook');
  const measured = await alone('Portico, with a handler', handling, HANDLED);
  const go = await startGoWebhook(bench);
  if (go === undefined) {
    return { measured, notes: ['`webhook` (Debian package) is not installed, so it was left out.'] };
  }
  try {
    return { measured: [...measured, ...(await alone('webhook (Go)', go, PLAIN))], notes: [] };
  } catch (error) {
    // Processes of earlier rounds may keep it busy.
    return { measured, notes: [`\`webhook\` (Go) was left out: ${(error as Error).message}.`] };
  }
}
