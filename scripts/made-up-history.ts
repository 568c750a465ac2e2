/** The replaced parts of the history endpoint's answer. */
interface Read {
  readonly interval: number;
  readonly columns: Readonly<Record<string, { readonly unit: string }>>;
}

const COUNT = 300;

/**
 * Fifteen minutes of a service in use, with a deployment of its clients in the middle; identical in each run.
 */
export function madeUp(read: Read): unknown {
  const now = Date.now();
  const times = Array.from({ length: COUNT }, (_, i) => now - (COUNT - i) * read.interval);
  const columns = Object.entries(read.columns).map(([name, column], number) => {
    const waves = wander(number + 1);
    return [name, { ...column, values: times.map((_, i) => level(name, i / COUNT, waves())) }] as const;
  });
  return { ...read, times, columns: Object.fromEntries(columns) };
}

/** A random walk between 0 and 1. */
function wander(seed: number): () => number {
  let state = seed * 2_654_435_761;
  const random = () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
  let slow = 0.5;
  return () => {
    slow += (random() - 0.5) * 0.12 + (0.5 - slow) * 0.05;
    return Math.min(1, Math.max(0, slow + (random() - 0.5) * 0.22));
  };
}

function level(name: string, at: number, w: number): number {
  const busy = 1 + 1.1 * Math.exp(-(((at - 0.62) / 0.055) ** 4));
  const backlog = at > 0.56 && at < 0.74 ? Math.sin(((at - 0.56) / 0.18) * Math.PI) : 0;
  const levels: Readonly<Record<string, number>> = {
    'graphql.requests': (180 + 90 * w) * busy,
    'rest.requests': (340 + 160 * w) * busy,
    'webhook.requests': 40 + 70 * w,
    'management.requests': 0.5 + 0.3 * w,
    'rest.errors': at > 0.56 && at < 0.61 ? 0.04 * w : 0,
    'graphql.p50': 0.5 + 0.3 * w,
    'rest.p50': 0.3 + 0.15 * w,
    'webhook.p50': 1.1 + 0.6 * w,
    'management.p50': 0.8 + 0.2 * w,
    'graphql.p99': (3 + 4 * w * w) * busy,
    'rest.p99': (2 + 3 * w * w) * busy,
    'webhook.p99': 4 + 6 * w * w,
    'management.p99': 2 + 2 * w,
    'eventloop.p99': (1 + 3 * w * w) * busy,
    'eventloop.max': (4 + 9 * w * w) * busy,
    'eventloop.utilization': (0.2 + 0.2 * w) * busy,
    'process.cpu': (0.3 + 0.2 * w) * busy,
    'process.memory': 142e6 + 6e6 * w + 9e6 * at,
    'process.heap': 38e6 + 14e6 * ((at * 23 + w * 0.15) % 1),
    'database.commits': (60 + 50 * w) * busy,
    'database.batch': 1 + 1.6 * w * busy,
    'database.commit': 0.8 + 0.9 * w * w,
    'inbox.received': 40 + 70 * w,
    'inbox.open': 160 * backlog + 3 * w,
    'inbox.age': 9 * backlog + 0.2 * w,
    'inbox.dead': 2,
    'inbox.attempts.done': 40 + 70 * w - 20 * backlog,
    'inbox.attempts.retry': 14 * backlog * w + 0.4 * w,
    'inbox.attempts.dead': 0.01,
    'inbox.target.handler:new_commit': 24 + 40 * w,
    'inbox.target.handler:payment_received': 12 + 22 * w,
    'inbox.target.forward:billing': 4 + 8 * w,
  };
  return levels[name] ?? 0;
}
