import { refuseFromOtherSite } from '../../http/cross-site.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import { HttpProblem } from '../../http/problem.ts';
import { fileHead, fileReply, neverIdle } from '../dumps/file-reply.ts';
import { recordCpuProfile } from '../dumps/record-cpu-profile.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';

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
 * The cpuprofile endpoint: a CPU profile of the main thread, recorded while the request waits.
 * It slows the process, so its access is none by default.
 */
export function cpuProfileEndpoint(record = recordCpuProfile): ManagementEndpoint {
  let busy = false;
  const stopped = new AbortController();

  async function profile(exchange: Exchange): Promise<Reply> {
    refuseFromOtherSite('Profiles', exchange);
    const { seconds = DEFAULT_SECONDS } = exchange.query;
    const duration = typeof seconds === 'string' && /^[1-9]\d?$/.test(seconds) ? Number(seconds) : undefined;
    if (duration === undefined || duration > MAX_SECONDS) throw BAD_SECONDS;
    if (busy) throw BUSY;
    neverIdle(exchange);
    busy = true;
    const gone = new AbortController();
    exchange.onClose(() => gone.abort());
    try {
      const recorded = await record(duration * 1_000, AbortSignal.any([gone.signal, stopped.signal]));
      return fileReply('cpuprofile', recorded);
    } finally {
      busy = false;
    }
  }

  return {
    id: 'cpuprofile',
    about: 'A CPU profile of the main thread, recorded for some seconds (?seconds=10).',
    ownAccess: 'none',
    routes(scope) {
      // A stop ends a recording early.
      scope.addHook('preClose', (done) => {
        stopped.abort();
        done();
      });
      return { '/cpuprofile': { get: profile, head: () => fileHead('cpuprofile'), fast: false } };
    },
  };
}
