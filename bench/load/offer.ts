import { Agent, request as send } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpRequest } from './load.ts';

/** Between two times that requests are sent, in milliseconds. */
const INTERVAL = 10;

export interface Offer {
  readonly origin: string;
  readonly request: HttpRequest;
  /** How many are sent at a time, a hundred times a second; default 1. */
  readonly batch?: number;
}

/**
 * Sends requests at a steady pace while `work` goes on, never waiting for an answer before the next one, so that a
 * server that stops for a while is seen as often as it is asked. Resolves to their latencies, in milliseconds; fails
 * when an answer is no 200.
 */
export async function offerDuring(
  { origin, request, batch = 1 }: Offer,
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
        else reject(new Error(`${path} answered ${response.statusCode} meanwhile`));
      });
    });
    sent.on('error', reject).end(body);
  });
  // It is looked at when all have come.
  answer.catch(() => {});
  return answer;
}
