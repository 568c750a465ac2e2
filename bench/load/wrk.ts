import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onCores } from '../machine/cores.ts';
import type { HttpRequest, Load, LoadResult } from './load.ts';
import { runProcess } from './run-process.ts';

interface Summary {
  readonly requests: number;
  /** In microseconds, like all fields below. */
  readonly duration: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Generates load with wrk: one thread, preformatted requests. */
export async function runWrk(load: Load): Promise<LoadResult> {
  const script = join(load.folder, 'load.lua');
  writeFileSync(script, luaScript(load.requests) + pauseScript(load.pause));
  const output = await runProcess([
    ...onCores(load.cores),
    ...['wrk', '-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`, '--timeout', '20s'],
    ...['-s', script, load.origin],
  ]);
  const { requests, duration, failed, p50, p99, max } = JSON.parse(
    output.slice(output.lastIndexOf('{"requests"')),
  ) as Summary;
  return {
    requests,
    perSecond: (requests / duration) * 1e6,
    failed,
    p50: p50 / 1e3,
    p99: p99 / 1e3,
    max: max / 1e3,
  };
}

function pauseScript(pause: number | undefined): string {
  return pause === undefined ? '' : `function delay() return ${pause} end\n`;
}

function luaScript(requests: readonly HttpRequest[]): string {
  const [only, ...others] = requests;
  return `${only !== undefined && others.length === 0 ? always(only) : inTurn(requests)}
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"duration":%d,"failed":%d,"p50":%d,"p99":%d,"max":%d}',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), latency.max))
end
`;
}

/** A single request, which wrk formats once, so that no script runs per request. */
function always(request: HttpRequest): string {
  const { method, path, headers, body } = luaParts(request);
  return `wrk.method, wrk.path, wrk.headers, wrk.body = ${method}, ${path}, ${headers}, ${body}`;
}

function inTurn(requests: readonly HttpRequest[]): string {
  const formats = requests.map((request) => {
    const { method, path, headers, body } = luaParts(request);
    return `requests[#requests + 1] = wrk.format(${method}, ${path}, ${headers}, ${body})`;
  });
  // Lua limits the number of constants in a function.
  const parts = chunks(formats, 500).map((part) => `parts[#parts + 1] = function()\n${part.join('\n')}\nend`);
  return `local requests, parts, last = {}, {}, 0
${parts.join('\n')}
function init()
  for _, part in ipairs(parts) do part() end
end
function request()
  last = last % #requests + 1
  return requests[last]
end`;
}

function luaParts({ method, path, headers = {}, body }: HttpRequest) {
  const fields = Object.entries(headers).map(([name, value]) => `[${lua(name)}]=${lua(value)}`);
  return {
    method: lua(method),
    path: lua(path),
    headers: `{${fields.join()}}`,
    body: body === undefined ? 'nil' : lua(body),
  };
}

/** A Lua string literal; bytes other than plain text are escaped by their number. */
function lua(text: string): string {
  const bytes = [...Buffer.from(text)].map((byte) =>
    byte >= 32 && byte < 127 && byte !== 34 && byte !== 92
      ? String.fromCharCode(byte)
      : `\\${String(byte).padStart(3, '0')}`,
  );
  return `"${bytes.join('')}"`;
}

function chunks<T>(values: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, i) =>
    values.slice(i * size, (i + 1) * size),
  );
}
