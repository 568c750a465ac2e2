/**
 * Durable webhook acknowledgements of Portico against an Express receiver that stores nothing: 64 connections, in
 * turn, several rounds in one run. Prints requests per second, latencies and the ratio of the medians.
 * `node bench/acknowledgements.ts [seconds per round] [rounds]`
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [seconds = 5, rounds = 3] = process.argv.slice(2).map(Number);
const HERE = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
const BODY = JSON.stringify({ event: 'invoice.paid', data: { id: 'in_1', amount: 4200, customer: 'cus_1' } });

interface Server {
  readonly process: ChildProcess;
  readonly url: string;
}

/** Servers run on one core and the load on the other, where there are two. */
function start(args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  return spawn('taskset', ['-c', '0', process.execPath, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function firstMatch(child: ChildProcess, pattern: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    const found = pattern.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`a server ended before it was ready: ${text}`);
}

async function portico(): Promise<Server> {
  const child = start([join(HERE, '../src/main.ts'), 'serve'], {
    INTERFACES: 'webhook',
    PORT: '0',
    SHUTDOWN_LINGER: '0',
    NODE_ENV: 'production',
  });
  const url = await firstMatch(child, /"webhook":"([^"]*)"/);
  child.stdout?.resume();
  return { process: child, url };
}

async function express(): Promise<Server> {
  const child = start([join(HERE, 'express-receiver.ts')], { NODE_ENV: 'production' });
  return { process: child, url: `${await firstMatch(child, /(http:\S+)/)}/webhook` };
}

interface Result {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
}

function load(url: string): Result {
  const cannon = join(HERE, 'node_modules/autocannon/autocannon.js');
  const args = ['-j', '-c', '64', '-d', String(seconds), '-m', 'POST', '-b', BODY];
  const output = execFileSync(
    'taskset',
    ['-c', '1', process.execPath, cannon, ...args, '-H', 'content-type=application/json', url],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const { requests, latency, non2xx, errors } = JSON.parse(String(output));
  return { rate: requests.average, p50: latency.p50, p99: latency.p99, failed: non2xx + errors };
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const servers = { portico: await portico(), express: await express() };
const results: Record<string, Result[]> = { portico: [], express: [] };
for (const { url } of Object.values(servers)) load(url);
for (let round = 0; round < rounds; round++) {
  for (const [name, { url }] of Object.entries(servers)) {
    const result = load(url);
    results[name]?.push(result);
    process.stdout.write(
      `round ${round + 1} ${name}: ${result.rate.toFixed(0)}/s, p50 ${result.p50} ms, p99 ${result.p99} ms, ${result.failed} failed\n`,
    );
  }
}
const rate = (name: string) => median((results[name] ?? []).map((result) => result.rate));
process.stdout.write(`portico / express: ${(rate('portico') / rate('express')).toFixed(2)}\n`);
for (const { process: child } of Object.values(servers)) {
  child.kill('SIGTERM');
  await once(child, 'exit');
}
rmSync(folder, { recursive: true, force: true });
