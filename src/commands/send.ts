import { printable } from '../core/quote.ts';
import { sentName } from '../webhook/event-names.ts';
import { readArguments } from './argv/command-arguments.ts';
import { countOf } from './argv/filter-arguments.ts';
import { usages } from './help/usages.ts';
import { extraHeaders } from './send/extra-headers.ts';
import { readContent, readJson } from './send/read-content.ts';
import { receiverOf } from './send/receiver.ts';
import { reportSent } from './send/report-sent.ts';
import { type Sending, type Sent, sendAll } from './send/send-all.ts';
import { senderOf } from './send/sender-of.ts';
import { INTERRUPTED, interruption } from './terminal/interruption.ts';
import { endWithReader, note } from './terminal/output.ts';
import { showProgress } from './terminal/progress.ts';

/**
 * `portico send`. Resolves to the exit code: 0 when every delivery was accepted, 1 when one was refused or got no
 * answer, 130 when interrupted. Rejects with UsageError or ConfigError.
 */
export async function sendCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.send, argv);
  const count = countOf(args, 'count', 1);
  if (args.has('--data') && args.has('--body')) throw args.misuse('--data and --body exclude each other');
  const headers = extraHeaders(args.values('--header'));
  const config = await args.configuration();
  const sendAs = senderOf(args, config);
  const receiver = receiverOf(args.value('--url'), config, sendAs);
  const named = args.value('--event') ?? 'test';
  const event = sentName(sendAs.layout, named);
  const data = await readJson('--data', args.value('--data') ?? '{}');
  const given = args.value('--body');
  const body = given === undefined ? undefined : await readContent('--body', given);
  endWithReader();
  // A body of one's own names its event itself, unless a header does.
  const isNamed = body === undefined || sendAs.layout.event.kind === 'header';
  if (event !== named && isNamed)
    note(`Sent as ${printable(event)}, the sender's own name for ${printable(named)}.`);

  using signal = interruption();
  const sending = { receiver, sendAs, event, data, body, headers, id: args.value('--id'), count };
  const sent = await sendShown(sending, signal);
  const code = await reportSent(sent, sending, args.has('--json'));
  if (!signal.aborted) return code;
  const answered = [...sent.statuses.values()].reduce((sum, times) => sum + times, 0);
  note(`Interrupted after ${answered} of ${count}.`);
  return INTERRUPTED;
}

/** Sends with a line of progress, which is cleared before anything else is printed. */
async function sendShown(sending: Sending, signal: AbortSignal): Promise<Sent> {
  if (sending.count === 1) return sendAll(sending, signal, () => {});
  using progress = showProgress('Sending', sending.count);
  return await sendAll(sending, signal, progress.update);
}
