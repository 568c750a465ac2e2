import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { residentMegabytes } from '../../support/memory.ts';

/** What a service did while something went on. */
export interface Seen {
  /** The longest reply to a small request meanwhile, in milliseconds. */
  readonly stall: number;
  /** What its memory grew by at most, in megabytes. */
  readonly memory: number;
}

/** Asks a small thing again and again, and looks at the memory of the process, until `work` is done. */
export async function watch(url: string, pid: number, work: () => Promise<unknown>): Promise<Seen> {
  using agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
    [Symbol.dispose]: () => agent.destroy(),
  });
  const before = residentMegabytes(pid);
  let [stall, highest, isDone] = [0, before, false];
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const body = '{"query":"{hello}"}';
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const asked = request(url, { method: 'POST', agent, headers }, (reply) => {
        reply.resume().on('end', resolve);
      });
      asked.on('error', reject).end(body);
    });
  const watching = (async () => {
    while (!isDone) {
      const start = performance.now();
      await ask();
      stall = Math.max(stall, performance.now() - start);
      highest = Math.max(highest, residentMegabytes(pid));
      await delay(1);
    }
  })();
  try {
    await work();
  } finally {
    isDone = true;
    await watching;
  }
  return { stall, memory: highest - before };
}
