import { printable } from '../../core/quote.ts';
import { counted, note, print, printJson } from '../terminal/output.ts';
import type { Sending, Sent } from './send-all.ts';

/** Prints the answers of the receiver; resolves to the exit code. */
export async function reportSent(
  sent: Sent,
  sending: Pick<Sending, 'receiver' | 'count'>,
  json: boolean,
): Promise<number> {
  const { statuses, last, problem } = sent;
  const { receiver, count } = sending;
  if (json) await printJson(summaryOf(sent, sending));
  else if (count > 1) {
    for (const [status, times] of statuses)
      await print(`${status}: ${counted(times, 'delivery', 'deliveries')}\n`);
  } else if (last !== undefined) {
    const { reply } = last;
    note(`${receiver.url}, id ${last.id}, ${Math.round(reply.took)} ms`);
    const body = reply.body === '' ? '' : `${reply.body.trimEnd()}\n`;
    await print(`${reply.status} ${printable(reply.statusText)}\n${body}`);
    if (reply.delivery !== undefined) note(`Next: portico deliveries show ${reply.delivery}`);
  }
  if (problem !== undefined) note(`portico: ${problem}`);
  const accepted = [...statuses.keys()].every((status) => status >= 200 && status < 300);
  for (const status of statuses.keys()) {
    const hint = HINTS.get(status);
    if (hint !== undefined) note(hint);
  }
  return accepted && problem === undefined ? 0 : 1;
}

const HINTS: ReadonlyMap<number, string> = new Map([
  [
    401,
    'The receiver does not accept this token or signature: do both sides have the same secret, and the same time?',
  ],
  [404, 'The receiver has no such path: is the source in its configuration?'],
]);

function summaryOf(
  { statuses, last, problem }: Sent,
  { receiver, count }: Pick<Sending, 'receiver' | 'count'>,
) {
  const common = { url: receiver.url.href, ...(problem !== undefined && { problem }) };
  if (count > 1) return { ...common, statuses: Object.fromEntries(statuses) };
  if (last === undefined) return common;
  const { status, delivery, body, took } = last.reply;
  return {
    ...common,
    id: last.id,
    ...(delivery !== undefined && { delivery }),
    status,
    body,
    took: Math.round(took),
  };
}
