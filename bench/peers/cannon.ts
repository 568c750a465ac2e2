import { text } from 'node:stream/consumers';
import autocannon from 'autocannon';
import type { Load, LoadResult } from '../load/load.ts';

// Used without wrk: reads a load from standard input and writes the result.
const { origin, requests, connections, seconds } = JSON.parse(await text(process.stdin)) as Load;
const found = await autocannon({
  url: origin,
  connections,
  duration: seconds,
  timeout: 20,
  requests: requests.map(({ method, path, headers, body }) => ({
    method,
    path,
    ...(headers && { headers }),
    ...(body !== undefined && { body }),
  })),
});
const { latency, errors, timeouts, non2xx } = found;
const answered = found['2xx'] + non2xx;
const result: LoadResult = {
  requests: answered,
  perSecond: answered / found.duration,
  p50: latency.p50,
  p99: latency.p99,
  max: latency.max,
  failed: errors + timeouts + non2xx,
};
process.stdout.write(JSON.stringify(result));
