import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpProblem } from '../../http/problem.ts';
import { fileHeaders } from '../dumps/file-headers.ts';
import { neverIdle } from '../dumps/never-idle.ts';
import type { Endpoint } from '../endpoint.ts';
import { addOperations } from '../operations.ts';
import { recordCpuProfile } from './record-cpu-profile.ts';

const DEFAULT_SECONDS = '10';
const MAX_SECONDS = 60;

const BUSY = new HttpProblem(429, 'CPU_PROFILE_BUSY', 'A CPU profile is being recorded already', {
  headers: { 'retry-after': String(MAX_SECONDS) },
});
const BAD_SECONDS = new HttpProblem(
  400,
  'CPU_PROFILE_SECONDS',
  `seconds has to be a whole number from 1 to ${MAX_SECONDS}`,
);

/**
 * The cpuprofile endpoint: what the main thread spends its time on, recorded while the request waits.
 * It slows the process, so nobody gets one unless it is configured.
 */
export function cpuProfileEndpoint(record = recordCpuProfile): Endpoint {
  let busy = false;
  const stopped = new AbortController();

  async function profile(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { seconds = DEFAULT_SECONDS } = request.query as { readonly seconds?: unknown };
    const duration = typeof seconds === 'string' && /^[1-9]\d?$/.test(seconds) ? Number(seconds) : undefined;
    if (duration === undefined || duration > MAX_SECONDS) throw BAD_SECONDS;
    if (busy) throw BUSY;
    neverIdle(request);
    busy = true;
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    try {
      const recorded = await record(duration * 1_000, AbortSignal.any([gone.signal, stopped.signal]));
      return reply
        .headers(fileHeaders('cpuprofile'))
        .header('connection', 'close')
        .send(Buffer.from(recorded));
    } finally {
      busy = false;
    }
  }

  return {
    id: 'cpuprofile',
    about: 'What the main thread spends its time on, recorded for some seconds (?seconds=10).',
    ownAccess: 'none',
    links: [{ name: 'cpuprofile', path: '/cpuprofile', templated: false }],
    addRoutes(scope) {
      // A stop does not wait for a profile to become as long as it was asked for.
      scope.addHook('preClose', (done) => {
        stopped.abort();
        done();
      });
      addOperations(scope, '/cpuprofile', {
        HEAD: (_request, reply) => reply.headers(fileHeaders('cpuprofile')).send(),
        GET: profile,
      });
    },
  };
}
