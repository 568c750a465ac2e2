import type { Finding, Table } from '../row.ts';
import { POSTGRES, SENDERS, type Sender, type SendingServer, SQLITE } from '../servers/sending.ts';
import type { Workbench } from '../workbench.ts';
import { grouped, range } from './figures.ts';
import { median, ratio } from './statistics.ts';

/** A round with a sending service. */
export interface SendingRound {
  /** Events or deliveries. */
  readonly count: number;
  readonly seconds: number;
  /** CPU time of the service and of its database server, in seconds. */
  readonly service: number;
  readonly database: number;
}

export type Rounds<T> = ReadonlyMap<Sender, readonly T[]>;

/** Measures each service in turn, for several rounds, every second round in reverse order. */
export async function inTurn<T>(
  bench: Workbench,
  servers: readonly SendingServer[],
  what: string,
  rounds: number,
  measure: (server: SendingServer, round: number) => Promise<T>,
): Promise<Rounds<T>> {
  const found = new Map<Sender, T[]>(servers.map(({ label }) => [label, []]));
  for (let round = 0; round < rounds; round++) {
    for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
      bench.say(`${what}, round ${round + 1} of ${rounds}: ${server.label}`);
      found.get(server.label)?.push(await measure(server, round));
    }
  }
  return found;
}

/** Does something with a service; resolves to the result and to the CPU time that it took. */
export async function costOf<T>({ used }: SendingServer, work: () => Promise<T>) {
  const before = used();
  const result = await work();
  const { service, database } = used();
  return { result, service: service - before.service, database: database - before.database };
}

const rate = ({ count, seconds }: SendingRound) => count / seconds;
const perCore = ({ count, service, database }: SendingRound) => count / (service + database);

/** The rates and costs of all services. */
export function costTable(
  title: string,
  [one, many]: readonly [one: string, many: string],
  rounds: Rounds<SendingRound>,
): Table {
  return {
    head: [
      title,
      `${many}/s`,
      'lowest-highest',
      `service us/${one}`,
      `PostgreSQL us/${one}`,
      `${many} per CPU second`,
    ],
    lines: SENDERS.map((label) => {
      const all = rounds.get(label) ?? [];
      const micro = (time: (round: SendingRound) => number) =>
        median(all.map((round) => (time(round) / round.count) * 1e6)).toFixed(0);
      return [
        label,
        grouped(median(all.map(rate))),
        range(all.map(rate)),
        micro(({ service }) => service),
        label === SQLITE ? '-' : micro(({ database }) => database),
        grouped(median(all.map(perCore))),
      ];
    }),
  };
}

/** The minimum of what Portico does per CPU second, relative to the better peer. */
const TARGETS = { [SQLITE]: 1.5, [POSTGRES]: 1 } as const;

/** What Portico does per CPU second of all processes, relative to each peer; the target refers to the better one. */
export function costFindings(title: string, rounds: Rounds<SendingRound>): readonly Finding[] {
  return againstPeers(title, 'per CPU second', rounds, perCore, true, (own) => ({ atLeast: TARGETS[own] }));
}

/** A figure of Portico relative to that of each peer; the target refers to the best one. */
export function againstPeers<T>(
  title: string,
  what: string,
  rounds: Rounds<T>,
  figure: (round: T) => number,
  isMoreBetter: boolean,
  target: (own: keyof typeof TARGETS) => Finding['target'],
): readonly Finding[] {
  const valuesOf = (label: Sender) => (rounds.get(label) ?? []).map(figure);
  const peers = SENDERS.filter((label) => label !== SQLITE && label !== POSTGRES);
  const sign = isMoreBetter ? -1 : 1;
  const [best] = peers.toSorted((a, b) => sign * (median(valuesOf(a)) - median(valuesOf(b))));
  return ([SQLITE, POSTGRES] as const).flatMap((own) =>
    peers.map((peer) => ({
      what: `${title}, ${what}: ${own} / ${peer}`,
      unit: 'x' as const,
      ...ratio(valuesOf(own), valuesOf(peer)),
      target: peer === best ? target(own) : undefined,
    })),
  );
}
