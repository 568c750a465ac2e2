import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { describeError } from '../../core/describe-error.ts';
import { HEALTH_COMMAND } from '../../observability/health/readiness.ts';

/** The longest reply that is read, in characters: a reason is shorter. */
const LONGEST = 10_000;

/** Why the service at a URL is not ready; undefined when it is. */
export async function askReadiness(url: URL, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { status, body } = await get(url, signal);
    return status === 200 ? undefined : `${url.href} answered ${status}${quoted(body)}`;
  } catch (error) {
    return `${url.href}: ${describeError(error)}`;
  }
}

/** Why a door takes no connections; undefined when it does. */
export async function askConnection(door: URL, signal: AbortSignal): Promise<string | undefined> {
  const host = door.hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = connect({ host, port: Number(door.port || 80) });
  try {
    await once(socket, 'connect', { signal });
    return undefined;
  } catch (error) {
    return describeError(error);
  } finally {
    socket.destroy();
  }
}

async function get(url: URL, signal: AbortSignal) {
  const headers = { accept: 'application/json', 'user-agent': HEALTH_COMMAND };
  const asked = request(url, { agent: false, signal, headers }).end();
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
