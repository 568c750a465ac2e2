import type { BodiesRule, PruneStep } from '../../../../inbox/prune.ts';
import type { Server } from '../../pool/server.ts';
import { emptySlot } from './empty-slot.ts';
import { passedSlots, type Rotation, rotateSlots } from './slots.ts';

/** Takes a step of the rule for bodies. Rejects as `Server.write` does. */
export async function emptySlots(server: Server, rule: BodiesRule & Rotation): Promise<PruneStep> {
  await rotateSlots(server, rule);
  const slots = await passedSlots(server);
  let isLast = true;
  for (const slot of slots) {
    if (await emptySlot(server, slot)) isLast = false;
  }
  return { removed: 0, looked: slots.length, isLast };
}
