import { API, noteAnswer } from './live.ts';

/** The service answered with an error, or not at all (status 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Reads an endpoint. Throws ApiError. */
export function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return ask<T>(path, signal === undefined ? {} : { signal });
}

/** Sends an action; no form on another page can send its header. Throws ApiError. */
export function act<T = void>(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { 'x-portico-console': '1' };
  // keepalive: the request is sent even if the user leaves the page.
  if (body === undefined) return ask<T>(path, { method, headers, keepalive: true });
  headers['content-type'] = 'application/json';
  return ask<T>(path, { method, headers, body: JSON.stringify(body) });
}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  const headers = { accept: 'application/json', ...init.headers };
  try {
    response = await fetch(API + path, { cache: 'no-store', ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    noteAnswer(false);
    throw new ApiError(0, 'The service does not answer');
  }
  noteAnswer(true);
  const text = await response.text();
  // An unhealthy service reports health with status 503 and the usual body.
  const isHealth = path.startsWith('health') && response.status === 503;
  if (!response.ok && !isHealth) throw new ApiError(response.status, messageOf(text) ?? response.statusText);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function messageOf(text: string): string | undefined {
  try {
    const { message, error } = JSON.parse(text);
    return message ?? error;
  } catch {
    return undefined;
  }
}
