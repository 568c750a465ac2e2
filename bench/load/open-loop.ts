import { Agent, request as send } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpRequest } from './load.ts';

/** Interval between two batches of requests, in milliseconds. */
const INTERVAL = 10;

export interface OpenLoop {
  readonly origin: string;
  readonly request: HttpRequest;
  /** Number of requests sent together, a hundred times a second. Default: 1. */
  readonly batch?: number;
}

/**
 * An open loop: sends requests at a fixed rate while `work` is pending, without waiting for replies, so that
 * a stall of the server delays every request that arrives during it. Resolves to the latencies in
 * milliseconds; rejects if the status of a reply is not 200.
 */
export async function openLoopDuring(
  { origin, request, batch = 1 }: OpenLoop,
  work: Promise<unknown>,
): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true });
  const answers: Promise<number>[] = [];
  let working = true;
  const ended = () => {
    working = false;
  };
  work.then(ended, ended);
  while (working) {
    for (let i = 0; i < batch; i++) answers.push(latencyOf(origin, request, agent));
    await delay(INTERVAL);
  }
  await work;
  const latencies = await Promise.all(answers);
  agent.destroy();
  return latencies;
}

function latencyOf(
  origin: string,
  { method, path, headers, body }: HttpRequest,
  agent: Agent,
): Promise<number> {
  const begin = performance.now();
  const answer = new Promise<number>((resolve, reject) => {
    const sent = send(origin + path, { method, agent, ...(headers && { headers }) }, (response) => {
      response.resume().on('end', () => {
        if (response.statusCode === 200) resolve(performance.now() - begin);
        else reject(new Error(`${path} answered ${response.statusCode}`));
      });
    });
    sent.on('error', reject).end(body);
  });
  // All are awaited together at the end.
  answer.catch(() => {});
  return answer;
}
