import { randomUUID } from 'node:crypto';
import { readArguments } from './command-arguments.ts';
import { countOf } from './deliveries/filter-arguments.ts';
import { readConfiguration } from './deliveries/open-deliveries.ts';
import { INTERRUPTED, interruption } from './interruption.ts';
import { endWithReader, note } from './output.ts';
import { showProgress } from './progress.ts';
import { buildBody } from './send/build-body.ts';
import { extraHeaders } from './send/extra-headers.ts';
import { createSender } from './send/post.ts';
import { readContent, readJson } from './send/read-content.ts';
import { receiverUrl } from './send/receiver-url.ts';
import { reportSent, type Sent } from './send/report-sent.ts';
import { senderOf } from './send/sender-of.ts';
import { noAnswer, signedHeaders } from './send/signed-headers.ts';
import { sendUsage } from './send/usage.ts';
import { UsageError } from './usage-error.ts';

/**
 * `portico send`. Resolves to the exit code: 0 when every delivery was accepted, 1 when one was refused or nothing
 * answered, 130 when it was interrupted. Fails with UsageError or ConfigError.
 */
export async function sendCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(sendUsage, argv);
  const count = countOf(args, 'count', 1, sendUsage);
  if (args.has('--data') && args.has('--body')) {
    throw new UsageError(['--data and --body exclude each other'], sendUsage.topic);
  }
  const headers = extraHeaders(args.values('--header'));
  const config = await readConfiguration(args.config);
  const sendAs = senderOf(args, config);
  const url = receiverUrl(args.value('--url'), config, sendAs);
  const event = args.value('--event') ?? 'test';
  const data = await readJson('--data', args.value('--data') ?? '{}');
  const given = args.value('--body');
  const body = given === undefined ? undefined : await readContent('--body', given);
  endWithReader();

  using interrupted = interruption();
  using sender = createSender(url);
  const { signal } = interrupted;
  const statuses = new Map<number, number>();
  let last: Sent['last'];
  let problem: string | undefined;
  using progress = showProgress('Sending', count);
  for (let i = 0; i < count && !signal.aborted && problem === undefined; i++) {
    const id = args.value('--id') ?? randomUUID();
    const parts = { id, event, body: body ?? buildBody(sendAs.layout, { event, data, id }), headers };
    const signed = signedHeaders(sendAs, parts);
    try {
      const reply = await sender.post(signed, parts.body, signal);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      last = { id, reply };
    } catch (error) {
      if (!signal.aborted) problem = noAnswer(url, error);
    }
    progress.update(i + 1);
  }
  progress[Symbol.dispose]();
  const code = await reportSent({ url, count, statuses, last, problem }, args.has('--json'));
  if (!signal.aborted) return code;
  note(`Interrupted after ${[...statuses.values()].reduce((sum, times) => sum + times, 0)} of ${count}.`);
  return INTERRUPTED;
}
