import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { describeError } from '../../core/describe-error.ts';
import { onlyWith, type Receiver } from '../../http/client/sender.ts';
import { HEALTH_COMMAND } from '../../observability/health/readiness.ts';

/** The longest reply that is read, in characters: a reason is shorter. */
const LONGEST = 10_000;

/** Why the service there is not ready; undefined when it is. */
export async function askReadiness(target: Receiver, signal: AbortSignal): Promise<string | undefined> {
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

/** Why a door takes no connections; undefined when it does. */
export async function askConnection(door: Receiver, signal: AbortSignal): Promise<string | undefined> {
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

/** The status of a health reply; nothing of what is none. */
function quoted(body: string): string {
  const [, status] = /^\{"status":"([A-Z_]+)"/.exec(body) ?? [];
  return status === undefined ? '' : `, ${status}`;
}
