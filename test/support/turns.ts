import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** What a process is started with, so that the turns of its event loop can be asked for. */
export function watchedTurns(folder: string) {
  const address = join(folder, 'turns');
  return {
    env: { PORTICO_TURNS: address },
    nodeArgs: [`--import=${join(import.meta.dirname, 'turn-watch.ts')}`],
    /** The processor time of the longest turn since the last call, in milliseconds. */
    longest: async () => Number(await text(connect(address))),
  };
}
