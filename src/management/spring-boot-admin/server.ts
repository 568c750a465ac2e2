import { unescape as decode } from 'node:querystring';

/** An application as registered with a Spring Boot Admin server. */
export interface AdminApplication {
  readonly name: string;
  /** The base path of the management endpoints. */
  readonly managementUrl: string;
  readonly healthUrl: string;
  readonly serviceUrl: string;
  /** The server logs in with `user.name` and `user.password`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** A Spring Boot Admin server refused a request or answered something else. */
export class AdminServerError extends Error {
  override readonly name = 'AdminServerError';
  readonly code = 'SPRING_BOOT_ADMIN';
}

const MAX_REPLY_BYTES = 64 * 1024;

/**
 * The two requests to the server at a URL, whose user and password are sent as Basic credentials. They fail with
 * AdminServerError, or as `fetch` does.
 */
export function adminServer(url: string) {
  const base = new URL(url);
  const { username, password } = base;
  base.username = '';
  base.password = '';
  const instances = `${base.href.replace(/\/+$/, '')}/instances`;
  const headers: Record<string, string> = { accept: 'application/json' };
  if (username !== '' || password !== '') {
    const credentials = `${decode(username)}:${decode(password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  }

  async function ask(path: string, init: RequestInit, alsoGood?: number): Promise<string> {
    // A log-in page behind a redirect would look like success.
    const response = await fetch(`${instances}${path}`, { ...init, redirect: 'manual' });
    const text = await readBounded(response);
    if (!response.ok && response.status !== alsoGood)
      throw new AdminServerError(`The server answered ${response.status}`);
    return text;
  }

  return {
    /** Without credentials: for logs. */
    url: base.href,
    /** Resolves to the id of the registration; the same for the same application. */
    async register(application: AdminApplication, signal: AbortSignal): Promise<string> {
      const init = { method: 'POST', body: JSON.stringify(application), signal };
      const text = await ask('', { ...init, headers: { ...headers, 'content-type': 'application/json' } });
      return idOf(text);
    },
    async deregister(id: string, signal: AbortSignal): Promise<void> {
      // Not registered any more.
      await ask(`/${encodeURIComponent(id)}`, { method: 'DELETE', headers, signal }, 404);
    },
  };
}

function idOf(text: string): string {
  let reply: unknown;
  try {
    reply = JSON.parse(text);
  } catch (cause) {
    throw new AdminServerError('The server answered no JSON', { cause });
  }
  const { id } = Object(reply) as { readonly id?: unknown };
  if (typeof id !== 'string' || id === '') throw new AdminServerError('The server answered no id');
  return id;
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_REPLY_BYTES) throw new AdminServerError('The server answered more than a registration');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
