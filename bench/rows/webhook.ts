import type { HttpRequest } from '../load/load.ts';
import { hasTool } from '../machine/tools.ts';
import { type Contender, compare } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { rateRatio, summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startGoWebhook } from '../servers/go-webhook.ts';
import { startPeer } from '../servers/peer.ts';
import { startPortico } from '../servers/portico.ts';
import type { Server } from '../servers/server.ts';

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
    const handling = await startPortico(bench, 'webhook');
    await checkSameAnswers({ ...plain, handling }, PLAIN);
    const contenders: Contender[] = Object.entries(plain).map(([label, server]) => ({
      label,
      server,
      requests: PLAIN,
    }));
    if (!bench.pace.quick) {
      contenders.push({ label: 'Portico, handled too', server: handling, requests: HANDLED });
    }
    const inTurn = await compare(bench, contenders, { connections: 64 });
    // Afterwards and alone: the programs that it starts go on running for seconds, on everybody's core.
    const go = bench.pace.quick ? undefined : await startGoWebhook(bench);
    const alone =
      go === undefined
        ? []
        : await compare(bench, [{ label: 'webhook (Go)', server: go, requests: PLAIN }], { connections: 64 });
    const measured = [...inTurn, ...alone];
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
