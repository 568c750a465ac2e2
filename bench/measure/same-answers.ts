import assert from 'node:assert/strict';
import type { HttpRequest } from '../load/load.ts';
import type { Server } from '../servers/server.ts';

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

export async function ask(server: Server, request: HttpRequest): Promise<Answer> {
  const { method, path, headers = {}, body = null } = request;
  const response = await fetch(server.origin + path, { method, headers, body });
  return {
    status: response.status,
    type: response.headers.get('content-type') ?? '',
    text: await response.text(),
  };
}

/**
 * Rejects unless all servers answer each request with the same status of success and equal JSON (equal text if it is not
 * JSON). Resolves to the first server's answer to the first request.
 */
export async function checkSameAnswers(
  servers: Readonly<Record<string, Server>>,
  requests: readonly HttpRequest[],
): Promise<Answer> {
  let first: Answer | undefined;
  for (const request of requests) {
    let expected: Answer | undefined;
    for (const [label, server] of Object.entries(servers)) {
      const answer = await ask(server, request);
      assert.equal(
        Math.floor(answer.status / 100),
        2,
        `${label} answers ${answer.status}: ${answer.text.slice(0, 500)}`,
      );
      expected ??= answer;
      assert.equal(answer.status, expected.status, `${label} answers ${answer.status}`);
      assert.deepEqual(parsed(answer), parsed(expected), `${label} answers something else`);
    }
    first ??= expected;
  }
  if (first === undefined) throw new Error('there are no requests');
  return first;
}

/** The content of an answer: its JSON, or its text. */
export function parsed({ text }: Answer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
