import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startTestService } from '../support/service.ts';
import type { Check, Door, DoorName, Needs, Subject } from './check.ts';
import { inProcessDoor, socketDoor } from './doors.ts';

/** One column of the matrix. */
export interface Cell {
  readonly transport: 'in process' | 'socket';
  readonly database: 'memory' | 'file' | 'postgres';
  /** Settings by their environment names, for a check of the same thing in another way. */
  readonly env?: Readonly<Record<string, string>>;
  /** Not run by `npm test`, whose other cells have its transport and its database. */
  readonly inFull?: true;
}

export const cells: readonly Cell[] = [
  { transport: 'in process', database: 'memory' },
  { transport: 'in process', database: 'file', inFull: true },
  { transport: 'socket', database: 'memory', inFull: true },
  { transport: 'socket', database: 'file' },
  ...(withoutPostgres === undefined ? [{ transport: 'socket', database: 'postgres' } as const] : []),
];

/** Whether the cell has what the check needs. */
export function fits({ needs = {} }: Check, cell: Cell): boolean {
  return !(needs.restart && cell.database === 'memory') && !(needs.socket && cell.transport !== 'socket');
}

/** Starts a service as the check and the cell ask for it, with all its doors open. Disposing of the subject stops it. */
export async function openSubject(cell: Cell, needs: Needs): Promise<Subject & AsyncDisposable> {
  const { module } = needs;
  const { database } = cell;
  const service = await startTestService({
    database: database === 'memory' ? 'memory' : 'file',
    env: {
      ...(database === 'postgres' ? { DATABASE_URL: await postgresUrl() } : {}),
      ...cell.env,
      ...needs.env,
    },
    ...(module === undefined ? {} : { module }),
  });
  // In process too: what runs behind the answers, such as handlers, starts when the doors open.
  await service.listen();
  const door = (name: DoorName): Door =>
    cell.transport === 'socket'
      ? socketDoor(() => service.urls[name])
      : inProcessDoor(() => service.current.doors[name]);
  return {
    graphql: door('graphql'),
    rest: door('rest'),
    management: door('management'),
    webhook: door('webhook'),
    logs() {
      const [broken] = service.log.broken;
      if (broken !== undefined) throw new Error(`a log line is no JSON object: ${broken}`);
      return service.log.entries;
    },
    restart: () => service.restart(),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
