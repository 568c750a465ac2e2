import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Between two requests of the probe, in milliseconds. */
const INTERVAL = 10;

export interface ProbeResult {
  /** In milliseconds. */
  readonly latencies: readonly number[];
}

/**
 * Asks for a URL a hundred times a second while `work` goes on, never waiting for an answer before it asks again, so
 * that a server that stops for a while is seen as often as it is asked. Fails when an answer is no 200.
 */
export async function probeDuring(url: string, work: Promise<unknown>): Promise<ProbeResult> {
  const agent = new Agent({ keepAlive: true });
  const answers: Promise<number>[] = [];
  let working = true;
  const ended = () => {
    working = false;
  };
  work.then(ended, ended);
  while (working) {
    answers.push(latencyOf(url, agent));
    await delay(INTERVAL);
  }
  await work;
  const latencies = await Promise.all(answers);
  agent.destroy();
  return { latencies };
}

function latencyOf(url: string, agent: Agent): Promise<number> {
  const begin = performance.now();
  const answer = new Promise<number>((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.resume().on('end', () => {
        if (response.statusCode === 200) resolve(performance.now() - begin);
        else reject(new Error(`${url} answered ${response.statusCode} meanwhile`));
      });
    }).on('error', reject);
  });
  // It is looked at when all have come.
  answer.catch(() => {});
  return answer;
}
