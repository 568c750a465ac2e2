import type { HttpRequest } from '../load/load.ts';
import { hasTool } from '../machine/tools.ts';
import { compare, type Measured } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { rateRatio, summarise } from '../measure/summary.ts';
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
/** One that has a handler, which runs after the answer on the same core. */
const HANDLED = delivery('payment_received');

export const webhook: Row = {
  name: 'webhook',
  title: 'Webhook: acknowledgements',
  about:
    `POST \`/webhook\` of ${PLAIN[0]?.body?.length} bytes, 64 connections. Portico answers when the delivery is synced to the disk; Express ` +
    "parses it and stores nothing. Debian's `webhook` (Go) starts `/bin/true` for each delivery, which it cannot do without.",
  async run(bench) {
    const plain: Record<string, Server> = {
      Portico: await startPortico(bench, 'webhook'),
      Express: await startPeer(bench, 'express-receiver'),
    };
    if (!bench.pace.quick) {
      plain['Portico, not bound'] = await startPortico(bench, 'webhook', { onAllCores: true });
    }
    await checkSameAnswers(plain, PLAIN);
    const inTurn = await compare(
      bench,
      Object.entries(plain).map(([label, server]) => ({ label, server, requests: PLAIN })),
      { connections: 64 },
    );
    const measured = [...inTurn, ...(bench.pace.quick ? [] : await othersAlone(bench))];
    const notes = hasTool('webhook', '-version')
      ? []
      : ['`webhook` (Debian package) is not installed, so it was left out.'];
    const summary = summarise({
      measured,
      targets: { Express: 1.2 },
      notes,
      name: this.name,
      title: this.title,
    });
    const [express, free] = ['Express', 'Portico, not bound'].map((wanted) =>
      measured.find(({ label }) => label === wanted),
    );
    // Its writer is a second thread, as nothing in Express is.
    if (express === undefined || free === undefined) return summary;
    return { ...summary, findings: [...summary.findings, rateRatio(free, express, { atLeast: 1.2 })] };
  },
};

/** Those that go on working on everybody's core when their round is over: each is measured when the others are done. */
async function othersAlone(bench: Workbench): Promise<readonly Measured[]> {
  const alone = (label: string, server: Server, requests: readonly HttpRequest[]) =>
    compare(bench, [{ label, server, requests }], { connections: 64 });
  const handling = await startPortico(bench, 'webhook');
  const handled = await alone('Portico, handled too', handling, HANDLED);
  const go = await startGoWebhook(bench);
  return go === undefined ? handled : [...handled, ...(await alone('webhook (Go)', go, PLAIN))];
}
