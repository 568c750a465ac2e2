import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { Config } from '../app/load-config.ts';
import type { Door } from '../config/options/options.ts';
import { socketPathOf } from '../core/addresses.ts';
import { describeError, isExpected } from '../core/errors.ts';
import { onlyWith, type Receiver } from '../http/client.ts';
import { HEALTH_COMMAND } from '../telemetry/health.ts';
import { type CommandArguments, readArguments } from './arguments.ts';
import type { Command, CommandIo } from './command.ts';
import { note, print } from './terminal.ts';

/** In milliseconds. */
const TIMEOUT = 5_000;

/**
 * `portico health`. Exits with 0 if the service is ready and with 1 otherwise; it ends the process because
 * code of the configuration module may keep it running.
 */
export const health: Command = {
  usage: {
    topic: 'health',
    words: '[options]',
    about:
      'Checks whether the service of this configuration is ready: asks /readyz of the management door or, if that is ' +
      'closed, connects to the other doors. Exit code 0: ready. Exit code 1: not ready; standard error has the ' +
      'reason. A wrong option exits with 1 too, because container engines know no other code.',
    options: {
      '--url <url>':
        'URL to ask; without a path /readyz there. [default: the management door of the configuration]',
      '--timeout <ms>': 'Time limit from the start of the command, in milliseconds. [default: 5000]',
    },
    examples: ['portico health', 'portico health --url http://127.0.0.1:8080 --timeout 1000'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<never> {
  try {
    const reason = await ask(readArguments(health.usage, argv, io));
    if (reason === undefined) await print(io, 'ready\n');
    else note(io, `portico: not ready: ${reason}`);
    io.exit(reason === undefined ? 0 : 1);
  } catch (error) {
    if (!isExpected(error)) throw error;
    note(io, `portico: ${error.message}`);
    io.exit(1);
  }
}

/** Why the service is not ready; undefined when it is. Rejects with UsageError and ConfigError. */
async function ask(args: CommandArguments): Promise<string | undefined> {
  const limit = Number(args.value('--timeout') ?? TIMEOUT);
  if (!Number.isInteger(limit) || limit < 1 || limit > 600_000) {
    throw args.misuse('--timeout must be a whole number of milliseconds from 1 to 600000');
  }
  const limited = new AbortController();
  const { promise: late, resolve } = Promise.withResolvers<string>();
  // The limit includes the time since the process started, because loading a module may never end.
  const end = () => {
    resolve(`no answer within ${limit} ms`);
    limited.abort();
  };
  setTimeout(end, Math.max(1, limit - performance.now()));
  return Promise.race([late, reasonOf(args, limited.signal)]);
}

async function reasonOf(args: CommandArguments, signal: AbortSignal): Promise<string | undefined> {
  const url = args.value('--url');
  const asked = url === undefined ? targetsOf(await args.configuration()) : givenTarget(url);
  if ('problem' in asked) return asked.problem;
  if ('readiness' in asked) return askReadiness(asked.readiness, signal);
  const reasons = await Promise.all(asked.doors.map((door) => askConnection(door, signal)));
  return reasons.find((reason) => reason !== undefined);
}

/** Maximum length of a reply, in characters; reasons are shorter. */
const LONGEST = 10_000;

/** Why the service at `target` is not ready; undefined if it is. */
async function askReadiness(target: Receiver, signal: AbortSignal): Promise<string | undefined> {
  const place = placeOf(target);
  try {
    const { status, body } = await get(target, signal);
    return status === 200 ? undefined : `${place} answered ${status}${quoted(body)}`;
  } catch (error) {
    return `${place}: ${describeError(error)}`;
  }
}

function placeOf({ url, socketPath }: Receiver): string {
  return socketPath === undefined ? url.href : `${socketPath} ${url.pathname}`;
}

/** Why a door accepts no connections; undefined if it does. */
async function askConnection(door: Receiver, signal: AbortSignal): Promise<string | undefined> {
  const { hostname, port, protocol } = door.url;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = connect(
    door.socketPath === undefined
      ? { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) }
      : { path: door.socketPath },
  );
  try {
    await once(socket, 'connect', { signal });
    return undefined;
  } catch (error) {
    return describeError(error);
  } finally {
    socket.destroy();
  }
}

async function get({ url, socketPath, certificate }: Receiver, signal: AbortSignal) {
  const headers = { accept: 'application/json', 'user-agent': HEALTH_COMMAND };
  const options = { agent: false, signal, headers, socketPath };
  const asked =
    url.protocol === 'https:'
      ? httpsRequest(url, { ...options, ...(certificate !== undefined && onlyWith(certificate)) })
      : httpRequest(url, options);
  asked.end();
  const [response] = await once(asked, 'response');
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) {
    body += chunk;
    if (body.length > LONGEST) break;
  }
  return { status: Number(response.statusCode), body };
}

/** The status in a health reply; empty for any other reply. */
function quoted(body: string): string {
  const [, status] = /^\{"status":"([A-Z_]+)"/.exec(body) ?? [];
  return status === undefined ? '' : `, ${status}`;
}

/** What to ask: a URL that reports readiness, or the addresses of doors. */
type Targets =
  | { readonly readiness: Receiver }
  | { readonly doors: readonly Receiver[] }
  | { readonly problem: string };

/** Where to ask whether the service of a configuration is ready. */
function targetsOf(config: Config): Targets {
  const { interfaces } = config.settings;
  if (interfaces.includes('management')) {
    const readiness = ownDoor(config, 'management', '/readyz');
    return 'problem' in readiness ? readiness : { readiness };
  }
  const doors: Receiver[] = [];
  for (const door of interfaces) {
    const found = ownDoor(config, door, '/');
    if ('problem' in found) return found;
    doors.push(found);
  }
  return { doors };
}

/** The URL of `--url`. */
function givenTarget(given: string): Targets {
  const url = URL.parse(given);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return { problem: '--url must be an http or https URL' };
  }
  return { readiness: { url: url.pathname === '/' && url.search === '' ? new URL('/readyz', url) : url } };
}

/** The address of a path on a door that this configuration opens on this machine, or why it is unknown. */
export function ownDoor(
  { settings }: Config,
  door: Door,
  path: string,
): Receiver | { readonly problem: string } {
  const port = settings[`${door}.port`];
  const socketPath = socketPathOf(port);
  if (port === 0) {
    return { problem: `the port of the ${door} door is 0, a free one; give its URL with --url` };
  }
  const file = settings['tls.cert'];
  const place = socketPath === undefined ? `${reachable(settings.host)}:${port}` : 'localhost';
  if (file === undefined || socketPath !== undefined) {
    const url = new URL(`http://${place}${path}`);
    return socketPath === undefined ? { url } : { url, socketPath };
  }
  try {
    return { url: new URL(`https://${place}${path}`), certificate: readFileSync(file, 'utf8') };
  } catch {
    return {
      problem: `the certificate ${file} of tls.cert cannot be read; give the URL of the door with --url`,
    };
  }
}

/** A host to connect to; loopback for an address that means all interfaces. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
