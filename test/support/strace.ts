import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { waitFor } from './wait-for.ts';

/** Why a test that traces cannot run here, or false. */
export function withoutStrace(): string | false {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'needs strace (Debian package strace)';
  }
}

/** The process that a tracer has started. */
export function tracedProcess(tracer: number): number {
  const [pid] = readFileSync(`/proc/${tracer}/task/${tracer}/children`, 'utf8').trim().split(' ');
  if (!pid) throw new Error(`process ${tracer} has no child`);
  return Number(pid);
}

/** Attaches a tracer to a running process until it is disposed of: its words say which calls it changes, and how. */
export async function attachStrace(pid: number, words: readonly string[]): Promise<AsyncDisposable> {
  const tracer = spawn('strace', ['-f', '-p', String(pid), ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  tracer.stderr.setEncoding('utf8').on('data', (text: string) => {
    // Only the beginning is looked at; a trace can be long.
    if (said.length < 10_000) said += text;
  });
  const ended = once(tracer, 'close');
  await waitFor('the tracer to attach', () => {
    if (tracer.exitCode !== null) throw new Error(`strace ended: ${said}`);
    return said.includes('attached');
  });
  return {
    async [Symbol.asyncDispose]() {
      tracer.kill('SIGINT');
      await ended;
    },
  };
}
