import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { validateHeaderValue } from 'node:http';
import type { Config } from '../app/load-config.ts';
import { webhookSettings } from '../app/webhook-door.ts';
import { readSecretFile } from '../config/secrets.ts';
import { valueAt } from '../core/json.ts';
import { headerName } from '../core/redaction.ts';
import { didYouMean, printable } from '../core/text.ts';
import { createSender, type Receiver, type Reply } from '../http/client.ts';
import { sentName } from '../inbox/event-names.ts';
import { type SchemeName, schemeNames } from '../signatures/config.ts';
import {
  bodyAlone,
  github,
  hmac,
  slack,
  stripe,
  token,
  UnsignableError,
  UnusableSecretError,
} from '../signatures/hmac.ts';
import { buildBody, signDelivery } from '../signatures/outgoing.ts';
import { type Sample, samplesOf } from '../signatures/samples.ts';
import type { AnyScheme, Signer } from '../signatures/schemes.ts';
import { senderScheme } from '../signatures/senders.ts';
import {
  defaultLayout,
  type SourceLayout,
  type SourceSettings,
  secretProblem,
} from '../signatures/sources.ts';
import { standard } from '../signatures/standard.ts';
import { type CommandArguments, readArguments } from './arguments.ts';
import { type Command, type CommandIo, JSON_OPTION, UsageError } from './command.ts';
import { countOf } from './deliveries/filter.ts';
import { ownDoor } from './health.ts';
import { counted, INTERRUPTED, interruption, note, print, printJson, showProgress } from './terminal.ts';

/**
 * `portico send`. Resolves to the exit code: 0 when every delivery was accepted, 1 when one was refused or
 * got no answer, 130 when interrupted. Rejects with UsageError or ConfigError.
 */
export const send: Command = {
  usage: {
    topic: 'send',
    words: '[options]',
    about:
      'Sends a delivery to a receiver, signed as its sender would. Without options it goes to /webhook of the webhook ' +
      'door of this configuration, with its token.',
    options: {
      '--source <name>': 'Source in webhook.sources whose scheme, secret and layout to use.',
      '--url <url>': 'URL of another receiver; without a path the webhook door there.',
      '--scheme <word>': `Signature scheme: ${schemeNames.join(', ')} or none. [default: that of --source, else token]`,
      '--secret <text>': 'Secret to sign with.',
      '--secret-file <file>': 'File with the secret to sign with.',
      '--signature-header <name>':
        'Header for the signature with --scheme hmac, or for the token with --scheme token.',
      '--event <name>': "Event, by the sender's name or the name in Portico. [default: test]",
      '--data <json>':
        "Data of the event: JSON, @file, or - for standard input. [default: a sample of the sender's event, else {}]",
      '--body <json>': 'Whole body, sent byte for byte, instead of --data: JSON, @file, or -.',
      '--header <name: text>': 'Additional header; can be given more than once.',
      '--id <text>':
        'Id of the delivery; receivers use it to recognise duplicates. [default: a new one for each delivery]',
      '--count <n>': 'Number of deliveries, sent one at a time. [default: 1]',
      ...JSON_OPTION,
    },
    secret: ['--secret'],
    repeatable: ['--header'],
    examples: [
      `portico send --event new_commit --data '{"sha":"c0ffee"}'`,
      'portico send --source stripe --event checkout.session.completed',
      'portico send --source github --event push --data @push.json',
      'portico send --url https://example.com/hooks --scheme standard --secret-file secret.txt',
    ],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(send.usage, argv, io);
  const count = countOf(args, 'count', 1);
  if (args.has('--data') && args.has('--body')) throw args.misuse('--data and --body exclude each other');
  const headers = extraHeaders(args.values('--header'));
  const config = await args.configuration();
  const sendAs = senderOf(args, config);
  const receiver = receiverOf(args.value('--url'), config, sendAs);
  const named = args.value('--event') ?? 'test';
  const event = sentName(sendAs.layout, named);
  const given = args.value('--body');
  const isSampled = given === undefined && !args.has('--data');
  const sample = isSampled ? sendAs.samples.find((each) => each.event === event) : undefined;
  const data = sample
    ? (valueAt(sample.body, sendAs.layout.data) ?? {})
    : await readJson(io, '--data', args.value('--data') ?? '{}');
  const body = given === undefined ? undefined : await readContent(io, '--body', given);
  // A body from --body names its event itself, unless a header names it.
  const isNamed = body === undefined || sendAs.layout.event.kind === 'header';
  if (event !== named && isNamed)
    note(io, `Sent as ${printable(event)}, the sender's name for ${printable(named)}.`);

  using signal = interruption(io);
  const allHeaders = { ...sample?.headers, ...headers };
  const id = args.value('--id');
  const sending = { receiver, sendAs, event, data, sample, body, headers: allHeaders, id, count };
  const sent = await sendShown(sending, io, signal);
  const code = await reportSent(io, sent, sending, args.has('--json'));
  if (isSampled && sample === undefined && args.has('--event')) noteSamples(io, event, sendAs.samples);
  if (!signal.aborted) return code;
  const answered = [...sent.statuses.values()].reduce((sum, times) => sum + times, 0);
  note(io, `Interrupted after ${answered} of ${count}.`);
  return INTERRUPTED;
}

/** Says which events have a sample, because this one was sent without data. */
function noteSamples(io: CommandIo, event: string, samples: readonly Sample[]): void {
  if (samples.length === 0) return;
  const names = samples.map((sample) => sample.event);
  note(io, `There is no sample of ${printable(event)}, so it had no data. Samples: ${names.join(', ')}.`);
}

/** Sends with a line of progress, and clears the line before anything else is printed. */
async function sendShown(sending: Sending, io: CommandIo, signal: AbortSignal): Promise<Sent> {
  if (sending.count === 1) return sendAll(sending, signal, () => {});
  using progress = showProgress(io, 'Sending', sending.count);
  return await sendAll(sending, signal, progress.update);
}

/** Parses headers written as `name: text`; names become lower case. Throws UsageError. */
function extraHeaders(lines: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      const name = colon === -1 ? undefined : headerName(line.slice(0, colon));
      const value = line.slice(colon + 1).trim();
      if (name === undefined || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
        throw misuse('--header must be like "x-request-id: 7"');
      }
      return [name, value];
    }),
  );
}

/** The error for options that `portico send` cannot use. */
function misuse(problem: string): UsageError {
  return new UsageError([problem], send.usage.topic);
}

/** What an option gives: its value, a file (`@file`) or standard input (`-`). Rejects with UsageError. */
async function readContent(io: CommandIo, flag: string, value: string): Promise<Buffer> {
  if (value === '-') return Buffer.concat(await io.stdin.toArray());
  if (!value.startsWith('@')) return Buffer.from(value);
  try {
    return readFileSync(value.slice(1));
  } catch (error) {
    throw misuse(`${flag}: ${error instanceof Error ? error.message : error}`);
  }
}

/** Like `readContent`, parsed as JSON. */
async function readJson(io: CommandIo, flag: string, value: string): Promise<unknown> {
  const content = await readContent(io, flag, value);
  try {
    return JSON.parse(content.toString());
  } catch (error) {
    throw misuse(`${flag} is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/** The receiver: the given one, or the webhook door of the configuration. Throws UsageError. */
function receiverOf(given: string | undefined, config: Config, { path, ownPath }: SendAs): Receiver {
  if (given !== undefined) {
    const url = URL.parse(given);
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      throw misuse('--url must be an http or https URL');
    }
    if (url.pathname === '/' && url.search === '') url.pathname = path;
    return { url };
  }
  if (!ownPath) {
    throw misuse('/webhook itself takes a token, not a signature; choose a receiver with --source or --url');
  }
  const own = ownDoor(config, 'webhook', path);
  if ('problem' in own) throw misuse(own.problem);
  return own;
}

/** Prints the receiver's answers; resolves to the exit code. */
async function reportSent(
  io: CommandIo,
  sent: Sent,
  sending: Pick<Sending, 'receiver' | 'count'>,
  json: boolean,
): Promise<number> {
  const { statuses, last, problem } = sent;
  const { receiver, count } = sending;
  if (json) await printJson(io, summaryOf(sent, sending));
  else if (count > 1) {
    for (const [status, times] of statuses)
      await print(io, `${status}: ${counted(times, 'delivery', 'deliveries')}\n`);
  } else if (last !== undefined) {
    const { reply } = last;
    note(io, `${receiver.url}, id ${last.id}, ${Math.round(reply.took)} ms`);
    const body = reply.body === '' ? '' : `${reply.body.trimEnd()}\n`;
    await print(io, `${reply.status} ${printable(reply.statusText)}\n${body}`);
    if (reply.delivery !== undefined) note(io, `Next: portico deliveries show ${reply.delivery}`);
  }
  if (problem !== undefined) note(io, `portico: ${problem}`);
  const accepted = [...statuses.keys()].every((status) => status >= 200 && status < 300);
  for (const status of statuses.keys()) {
    const hint = HINTS.get(status);
    if (hint !== undefined) note(io, hint);
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

interface Sending {
  readonly receiver: Receiver;
  readonly sendAs: SendAs;
  /** The event by the sender's name. */
  readonly event: string;
  readonly data: unknown;
  readonly sample: Sample | undefined;
  /** If set, sent byte for byte instead of a body built from event and data. */
  readonly body: Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: a new id for each delivery. */
  readonly id: string | undefined;
  readonly count: number;
}

interface Sent {
  /** The number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly last: { readonly id: string; readonly reply: Reply } | undefined;
  /** Why the last delivery got no answer. */
  readonly problem: string | undefined;
}

/**
 * Sends deliveries one at a time until one gets no answer or the signal is aborted; calls `onSent` with their
 * number after each. Rejects with UsageError when a delivery cannot be built or signed.
 */
async function sendAll(
  { receiver, sendAs, event, data, sample, body, headers, id, count }: Sending,
  signal: AbortSignal,
  onSent: (sent: number) => void,
): Promise<Sent> {
  using sender = createSender(receiver);
  const statuses = new Map<number, number>();
  let last: Sent['last'];
  for (let i = 0; i < count && !signal.aborted; i++) {
    const own = id ?? randomUUID();
    const content = body ?? built(sendAs, { event, data, sample, id: own });
    const signed = signedHeaders(sendAs, { id: own, event, body: content, headers });
    try {
      const reply = await sender.post(signed, content, signal);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      last = { id: own, reply };
    } catch (error) {
      return { statuses, last, problem: signal.aborted ? undefined : noAnswer(receiver.url, error) };
    }
    onSent(i + 1);
  }
  return { statuses, last, problem: undefined };
}

function built({ layout }: SendAs, parts: Parameters<typeof buildBody>[1]): Uint8Array {
  try {
    return buildBody(layout, parts);
  } catch (error) {
    throw error instanceof UnsignableError ? misuse(`--data: ${error.message}`) : error;
  }
}

/** The sender in whose name a delivery is signed. */
interface SendAs {
  /** The path of the webhook door for such deliveries. */
  readonly path: string;
  /** Whether that path accepts this scheme; if not, --url is required. */
  readonly ownPath: boolean;
  readonly layout: SourceLayout;
  readonly sign: Signer;
  readonly samples: readonly Sample[];
}

const unsigned: Signer = () => ({});

/** The sender that the options describe. Throws UsageError, or ConfigError for webhook.sources. */
function senderOf(args: CommandArguments, config: Config): SendAs {
  const name = args.value('--source');
  const source = name === undefined ? undefined : findSource(name, config);
  const scheme = schemeOf(args, source);
  const path = source === undefined ? '/webhook' : `/webhook/${source.name}`;
  const ownPath = source !== undefined || scheme === 'none' || scheme === 'token';
  const layout = source ?? defaultLayout(scheme === 'none' ? 'token' : scheme);
  const samples = scheme === 'none' ? [] : samplesOf(scheme);
  const common = { path, ownPath, layout, samples };
  if (scheme === 'none') return { ...common, sign: unsigned };
  const signature = source?.scheme === scheme ? source.signature : signatureOf(scheme, args);
  const secrets = secretsOf(args, scheme, source, config);
  // Without a configured secret, /webhook accepts deliveries without a token.
  if (secrets.length === 0 && scheme === 'token') return { ...common, sign: unsigned };
  if (secrets.length === 0) throw misuse(`--scheme ${scheme} needs --secret or --secret-file`);
  try {
    return { ...common, sign: signature.signer(secrets) };
  } catch (error) {
    if (!(error instanceof UnusableSecretError)) throw error;
    throw misuse(`${error.message}; give it with --secret or --secret-file`);
  }
}

function findSource(name: string, config: Config): SourceSettings {
  const { sources } = webhookSettings(config);
  const found = sources.find((source) => source.name === name);
  if (found !== undefined) return found;
  const names = sources.map((source) => source.name);
  const there = names.length === 0 ? 'there is none' : `there are ${names.join(', ')}`;
  throw misuse(`--source names no sender of webhook.sources${didYouMean(name, names) || `; ${there}`}`);
}

function schemeOf(args: CommandArguments, source: SourceSettings | undefined): SchemeName | 'none' {
  const given = args.value('--scheme');
  if (given === undefined) return source?.scheme ?? 'token';
  const known = [...schemeNames, 'none'] as const;
  const scheme = known.find((each) => each === given);
  if (scheme === undefined) {
    throw misuse(`--scheme must be one of ${known.join(', ')}${didYouMean(given, known)}`);
  }
  return scheme;
}

/** A scheme with its default parameters. */
function signatureOf(scheme: SchemeName, args: CommandArguments): AnyScheme {
  const given = args.value('--signature-header');
  const header = given === undefined ? undefined : headerName(given);
  if (given !== undefined && header === undefined)
    throw misuse('--signature-header must be the name of a header');
  switch (scheme) {
    case 'standard':
      return standard({ headerPrefix: 'webhook', tolerance: 0 });
    case 'github':
      return github;
    case 'stripe':
      return stripe(0);
    case 'slack':
      return slack(0);
    case 'token':
      return token(header ?? 'x-webhook-token');
    case 'hmac': {
      if (header === undefined) {
        throw misuse('--scheme hmac needs --signature-header, or a --source that says how it signs');
      }
      const plain = { algorithm: 'sha256', encoding: 'hex', prefix: '', timestampHeader: undefined } as const;
      return hmac({ header, ...plain, tolerance: 0, template: bodyAlone.fill });
    }
    default:
      return senderScheme(scheme, { tolerance: 0, url: args.value('--url') });
  }
}

function secretsOf(
  args: CommandArguments,
  scheme: SchemeName,
  source: SourceSettings | undefined,
  { settings }: Config,
): readonly string[] {
  const given = givenSecret(args);
  if (given !== undefined) {
    const problem = secretProblem(scheme, given);
    if (problem !== undefined) throw misuse(`the secret ${problem}`);
    return [given];
  }
  if (source !== undefined) return source.secrets;
  return scheme === 'token' ? (settings['webhook.secret'] ?? []) : [];
}

function givenSecret(args: CommandArguments): string | undefined {
  const file = args.value('--secret-file');
  const secret = args.value('--secret');
  if (file === undefined) return secret;
  if (secret !== undefined) throw misuse('--secret and --secret-file exclude each other');
  const read = readSecretFile('--secret-file', file, process.cwd());
  if ('problem' in read) throw misuse(read.problem);
  return read.text;
}

/** All headers of a delivery, signed now. Throws UsageError when it cannot be signed or sent. */
function signedHeaders(
  { layout, sign }: SendAs,
  delivery: Omit<Parameters<typeof signDelivery>[2], 'timestamp'>,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(Date.now() / 1_000);
  try {
    const headers = signDelivery(layout, sign, { ...delivery, timestamp });
    for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value);
    return headers;
  } catch (error) {
    if (error instanceof UnsignableError) throw misuse(`${error.message} (with --header or --id)`);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_INVALID_CHAR') throw error;
    throw misuse(message);
  }
}

/** Why a receiver gave no answer, in one sentence. */
function noAnswer({ origin }: URL, error: unknown): string {
  const { code, message, name } = innermost(error) as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') {
    return `Nothing listens at ${origin}; start it with "portico serve", or give its URL with --url.`;
  }
  if (name === 'TimeoutError') return `${origin} did not answer within 30 seconds.`;
  return `${origin} gave no answer: ${message || code}.`;
}

/** The innermost cause: connecting to several addresses of a name fails with one error for each. */
function innermost(error: unknown): unknown {
  if (error instanceof AggregateError) return innermost(error.errors[0]);
  const { name, cause } = Object(error) as Error;
  return name === 'AbortError' && cause !== undefined ? cause : error;
}
