import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { readSecretFile } from '../../config/secrets.ts';
import { describeError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { printable } from '../../core/text.ts';
import { createSender, onlyWith, type Receiver } from '../../http/client.ts';
import { type CommandArguments, readArguments } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { ownDoor } from '../health.ts';
import { eventText, interruption, note, pad, print } from '../terminal.ts';

/** Interval between two requests while nothing is new, in milliseconds. */
const INTERVAL = 500;
/** Deliveries per request: the rest stays at the service while a program is slow. */
const PAGE = 100;
/** Longest reply, in bytes: the largest body that a source accepts by default is 25 MiB. */
const MAX_REPLY = 32 * 1024 * 1024;
/** Time limit of one request, in milliseconds. */
const TIMEOUT = 30_000;

/** `portico listen`. Resolves to exit code 0 on Ctrl+C, 1 if the service cannot be followed. */
export const listen: Command = {
  usage: {
    topic: 'listen',
    words: '[options]',
    about:
      'Follows the deliveries of a running service by its management door until Ctrl+C, and hands each to a local ' +
      'address or a command. It changes nothing at the service. Without --url it asks the management door of this ' +
      'configuration.',
    options: {
      '--url <url>': 'URL of the management door; without a path /actuator there.',
      '--user <name>': 'User of the management door.',
      '--password-file <file>': 'File with the password of --user.',
      '--source <name>': 'Source of the deliveries; "" for those sent to /webhook.',
      '--event <name>': "Event of the deliveries, by the sender's name or the name in Portico.",
      '--to <url>': 'Address to which each delivery is posted, with its headers and its body.',
      '--exec <command>':
        'Shell command for each delivery: its body is the standard input, PORTICO_EVENT and the like are variables.',
      '--after <seq>': 'Number of the delivery after which to begin. [default: that of the newest]',
      '--json': 'Prints one JSON document per line instead of text.',
    },
    examples: [
      'portico listen --source stripe --to http://127.0.0.1:4000/hook',
      "portico listen --exec 'jq .type'",
    ],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(listen.usage, argv, io);
  const target = targetOf(args);
  const given = afterOf(args);
  const wants = wanted(args);
  using signal = interruption(io);
  using service = await serviceOf(args, signal);
  using handing = target;
  const line = args.has('--json') ? jsonLine : textLine;
  try {
    let after = given ?? (await service.newest());
    note(io, 'Waiting for deliveries; Ctrl+C ends it.');
    let problem: string | undefined;
    while (!signal.aborted) {
      try {
        if (problem !== undefined) {
          // A database in place of another one begins to count again.
          if ((await service.newest()) < after) after = 0;
          note(io, 'Connected again.');
          problem = undefined;
        }
        const items = await service.list(after);
        for (const item of items) {
          if (wants(item)) {
            // Fetched before the cursor moves: after an outage the same delivery comes next.
            const delivery = handing === undefined ? undefined : await service.show(item);
            const began = performance.now();
            const missing = handing === undefined ? item.status : 'removed';
            const result = delivery && handing ? await handing.hand(delivery, signal) : missing;
            if (signal.aborted) break;
            await print(io, line(item, result, delivery && Math.round(performance.now() - began)));
          }
          after = item.seq;
        }
        if (items.length > 0) continue;
      } catch (error) {
        if (signal.aborted) break;
        if (!(error instanceof UnreachableError)) throw error;
        if (problem === undefined) note(io, `${error.message}; trying again.`);
        problem = error.message;
      }
      await delay(INTERVAL, undefined, { signal }).catch(() => {});
    }
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof UnreachableError) && !(error instanceof RefusedError)) throw error;
    note(io, `portico: ${error.message}`);
    return 1;
  }
  return 0;
}

/** A delivery of the list. */
interface Item {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  readonly senderEvent: string | null;
  readonly status: string;
  readonly receivedAt: string;
}

/** A delivery to hand over. */
interface Handed extends Item {
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

function wanted(args: CommandArguments): (item: Item) => boolean {
  const source = args.value('--source');
  const event = args.value('--event');
  return (item) =>
    (source === undefined || item.source === source) &&
    (event === undefined || item.event === event || item.senderEvent === event);
}

/** Throws UsageError. */
function afterOf(args: CommandArguments): number | undefined {
  const given = args.value('--after');
  if (given === undefined) return undefined;
  if (!/^\d{1,15}$/.test(given)) throw args.misuse('--after must be a whole number, 0 for all deliveries');
  return Number(given);
}

/** No reply, or one of a service that cannot answer now. */
class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** The service does not let these requests read deliveries. */
class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

interface Service extends Disposable {
  /** The number of the newest delivery, once all before it are stored. */
  newest(): Promise<number>;
  /** The next deliveries in the order of arrival. */
  list(after: number): Promise<readonly Item[]>;
  /** Undefined if it was removed. */
  show(item: Item): Promise<Handed | undefined>;
}

/** The management door of a service. Rejects with UsageError. */
async function serviceOf(args: CommandArguments, signal: AbortSignal): Promise<Service> {
  const receiver = await receiverOf(args);
  const { url, socketPath, certificate } = receiver;
  const authorization = await credentialsOf(args);
  const isSecure = url.protocol === 'https:';
  const agent = isSecure
    ? new HttpsAgent({ keepAlive: true, ...(certificate !== undefined && onlyWith(certificate)) })
    : new HttpAgent({ keepAlive: true });

  let prefix = '';

  /** The body of a 200; undefined for a 404. Rejects with UnreachableError and RefusedError. */
  async function get(path: string): Promise<Buffer | undefined> {
    const asked = (isSecure ? httpsRequest : httpRequest)(new URL(url.href + path), {
      agent,
      socketPath,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
      headers: { 'user-agent': 'Portico', ...(authorization !== undefined && { authorization }) },
    });
    asked.end();
    try {
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      const body = await bytesOf(response);
      const { statusCode: status = 0 } = response;
      if (status === 200) return body;
      if (status === 404) return undefined;
      const problem = `${url.href} answered ${status}`;
      if (status >= 500 || status === 429) throw new UnreachableError(problem);
      throw new RefusedError(`${problem}${HINTS.get(status) ?? messageOf(body)}`);
    } catch (error) {
      if (error instanceof UnreachableError || error instanceof RefusedError) throw error;
      throw new UnreachableError(`${url.href} gave no answer: ${describeError(error)}`, { cause: error });
    }
  }

  async function json(path: string): Promise<unknown> {
    const body = await get(path);
    try {
      return body && JSON.parse(body.toString());
    } catch {
      throw new RefusedError(`${url.href} is not a management door of Portico`);
    }
  }

  async function items(query: string): Promise<readonly Item[]> {
    let reply = await json(`${prefix}/deliveries?${query}`);
    if (reply === undefined && prefix === '') {
      // The console may show deliveries where the door itself does not expose them.
      reply = await json(`${CONSOLE}/deliveries?${query}`);
      if (reply !== undefined) prefix = CONSOLE;
    }
    if (isRecord(reply) && Array.isArray(reply.items)) return reply.items as readonly Item[];
    throw new RefusedError(`${url.href} has no deliveries; it must be a management door that exposes them`);
  }
  const list = (after: number) => items(`after=${after}&limit=${PAGE}`);
  return {
    list,
    async newest() {
      const seq = (await items('limit=1'))[0]?.seq ?? 0;
      // A list in the order of arrival waits for deliveries that are still being stored.
      if (seq > 0) await list(seq - 1);
      return seq;
    },
    async show(item) {
      const path = `${prefix}/deliveries/${encodeURIComponent(item.id)}`;
      const detail = await json(path);
      const body = detail === undefined ? undefined : await get(`${path}?body=raw`);
      if (body === undefined) return undefined;
      if (!isRecord(detail) || !isRecord(detail.headers)) {
        throw new RefusedError(`${url.href} does not show bodies; see management.showDetails there`);
      }
      const contentType = typeof detail.contentType === 'string' ? detail.contentType : null;
      return { ...item, contentType, headers: detail.headers as Handed['headers'], body };
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** The console's own endpoints, below the management door's. */
const CONSOLE = '/console/api';

const HINTS: ReadonlyMap<number, string> = new Map([[401, '; give --user and --password-file']]);

/** The message of a refusal, to follow its status; empty without one. */
function messageOf(body: Buffer): string {
  try {
    const refusal: unknown = JSON.parse(body.toString());
    return isRecord(refusal) && typeof refusal.message === 'string'
      ? `: ${refusal.message.slice(0, 500)}`
      : '';
  } catch {
    return '';
  }
}

/** The whole body of a reply. Rejects if it is longer than `MAX_REPLY`. */
async function bytesOf(response: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response) {
    size += piece.length;
    if (size > MAX_REPLY) throw new RefusedError(`a reply is longer than ${MAX_REPLY} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Rejects with UsageError. */
async function receiverOf(args: CommandArguments): Promise<Receiver> {
  const given = args.value('--url');
  if (given === undefined) {
    const config = await args.configuration();
    const own = ownDoor(config, 'management', config.settings['management.basePath']);
    if ('problem' in own) throw args.misuse(own.problem);
    return own;
  }
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw args.misuse('--url must be an http or https URL without a query');
  }
  if (url.username !== '' || url.password !== '') {
    throw args.misuse('--url must not have a password; give --user and --password-file');
  }
  return { url: new URL(url.pathname === '/' ? '/actuator' : url.pathname.replace(/\/$/, ''), url) };
}

/** The Authorization header; undefined without --user. Rejects with UsageError. */
async function credentialsOf(args: CommandArguments): Promise<string | undefined> {
  const user = args.value('--user');
  const file = args.value('--password-file');
  if (user === undefined && file === undefined) return undefined;
  if (user === undefined || file === undefined)
    throw args.misuse('--user and --password-file need each other');
  const read = readSecretFile('--password-file', file, process.cwd());
  if ('problem' in read) throw args.misuse(read.problem);
  return `Basic ${Buffer.from(`${user}:${read.text}`).toString('base64')}`;
}

/** Takes deliveries one at a time. */
interface Target extends Disposable {
  /** Resolves to the result in a word or two, whatever it is. */
  hand(delivery: Handed, signal: AbortSignal): Promise<string>;
}

/** Throws UsageError. */
function targetOf(args: CommandArguments): Target | undefined {
  const to = args.value('--to');
  const command = args.value('--exec');
  if (to !== undefined && command !== undefined) throw args.misuse('--to and --exec exclude each other');
  if (command !== undefined) return { hand: commandRunner(command), [Symbol.dispose]() {} };
  if (to === undefined) return undefined;
  const url = URL.parse(to);
  if (url === null || !/^https?:$/.test(url.protocol)) throw args.misuse('--to must be an http or https URL');
  const sender = createSender({ url });
  return {
    async hand({ id, source, event, contentType, headers, body }, signal) {
      const own = { 'x-delivery-id': id, ...(source !== '' && { 'x-portico-source': source }) };
      const type = contentType === null ? {} : { 'content-type': contentType };
      const named = event !== null && /^[ -~]+$/.test(event) ? { 'x-portico-event': event } : {};
      try {
        return String((await sender.post({ ...headers, ...type, ...named, ...own }, body, signal)).status);
      } catch (error) {
        return signal.aborted ? 'interrupted' : describeError(error);
      }
    },
    [Symbol.dispose]: () => sender[Symbol.dispose](),
  };
}

/** Runs a shell command for each delivery; what it prints goes to standard error. */
function commandRunner(command: string): Target['hand'] {
  return async (delivery, signal) => {
    try {
      const child = spawn(command, {
        shell: true,
        signal,
        stdio: ['pipe', 2, 2],
        env: { ...process.env, ...variablesOf(delivery) },
      });
      // A command may end before it has read its input.
      child.stdin?.on('error', () => {}).end(delivery.body);
      const [code, killed] = (await once(child, 'close')) as [number | null, string | null];
      return killed ?? `exit ${code}`;
    } catch (error) {
      return signal.aborted ? 'interrupted' : describeError(error);
    }
  };
}

/** A delivery as environment variables; no value of these may hold a NUL. */
function variablesOf({ id, source, event, senderEvent, receivedAt, contentType, headers }: Handed) {
  const own = {
    PORTICO_ID: id,
    PORTICO_SOURCE: source,
    PORTICO_EVENT: event ?? '',
    PORTICO_SENDER_EVENT: senderEvent ?? '',
    PORTICO_RECEIVED_AT: receivedAt,
    PORTICO_CONTENT_TYPE: contentType ?? '',
    ...Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        `PORTICO_HEADER_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`,
        value,
      ]),
    ),
  };
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, value.replaceAll('\0', '')]));
}

function textLine(item: Item, result: string, took: number | undefined): string {
  const { id, source, receivedAt, event, senderEvent } = item;
  const names = { event, senderEvent: senderEvent === event ? null : senderEvent };
  const about = printable(eventText(names) ?? '-');
  const time = took === undefined ? '' : `  ${took} ms`;
  return `${receivedAt}  ${pad(source === '' ? '/webhook' : source, 8)}  ${about}  ${id}  ${printable(result)}${time}\n`;
}

function jsonLine(item: Item, result: string, ms: number | undefined): string {
  return `${JSON.stringify({ ...item, result, ms: ms ?? null })}\n`;
}
