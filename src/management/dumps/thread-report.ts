/** One frame of a stack. */
export interface Frame {
  readonly className: string;
  readonly methodName: string;
  readonly fileName: string | undefined;
  readonly lineNumber: number;
  /** Whether it belongs to Node itself. */
  readonly native: boolean;
}

/** A thread and its current stack. */
export interface ThreadState {
  readonly id: number;
  readonly name: string;
  /** Innermost first; empty for a thread that waits for something to do. */
  readonly stack: readonly Frame[];
}

/** The parts of Node's diagnostic report that are read; the rest, the environment above all, is ignored. */
interface Report {
  readonly header: { readonly threadId: number; readonly event: string };
  readonly javascriptStack?: { readonly stack?: readonly string[] };
  readonly workers?: readonly Report[];
}

/**
 * Reads the stacks of the main thread and every worker. It takes some milliseconds, or as long as a worker is in a
 * system call that cannot be interrupted.
 */
export function readThreads(): readonly ThreadState[] {
  const report = getReport();
  const workers = (report.workers ?? []).map((worker) => stateOf(worker, workerName(worker)));
  return [stateOf(report, 'main'), ...workers.sort((a, b) => a.id - b.id)];
}

function getReport(): Report {
  // Missing in the types.
  const reporter = process.report as typeof process.report & { excludeNetwork: boolean };
  const { excludeNetwork } = reporter;
  // With the network it would resolve the name of every peer.
  reporter.excludeNetwork = true;
  try {
    return reporter.getReport() as unknown as Report;
  } finally {
    reporter.excludeNetwork = excludeNetwork;
  }
}

function workerName({ header }: Report): string {
  return /\[(.*)\]$/.exec(header.event)?.[1] ?? 'worker';
}

function stateOf({ header, javascriptStack }: Report, name: string): ThreadState {
  const stack = (javascriptStack?.stack ?? []).flatMap((row) => parseFrame(row) ?? []);
  return { id: header.threadId, name, stack };
}

/** Parses a row like `at Pool.take (file:///x/pool.ts:3:7)`; undefined when it is none. */
export function parseFrame(row: string): Frame | undefined {
  const text = /^\s*at (?:async )?(.*)$/.exec(row)?.[1];
  if (text === undefined) return undefined;
  const open = text.endsWith(')') ? text.indexOf(' (') : -1;
  const where = open === -1 ? text : text.slice(open + 2, -1);
  const [, place = '', line] = /^(.*?)(?::(\d+))?(?::\d+)?$/.exec(where) ?? [];
  const called = (open === -1 ? '' : text.slice(0, open)).replace(/^new /, '').replace(/ \[as .*\]$/, '');
  const dot = called.lastIndexOf('.');
  return {
    className: dot === -1 ? '' : called.slice(0, dot),
    methodName: called.slice(dot + 1) || '<anonymous>',
    fileName: ['', '<anonymous>', 'native'].includes(place) ? undefined : place,
    lineNumber: line === undefined ? -1 : Number(line),
    native: place === 'native' || place.startsWith('node:'),
  };
}
