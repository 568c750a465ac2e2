import type { Server } from '../../pool/server.ts';

/** A delivery whose body was in a slot. */
export interface InSlot {
  readonly seq: number;
  readonly slot: number;
}

/**
 * The bodies of deliveries by their numbers. A body may have been copied into its row and its slot emptied meanwhile: the
 * statement locks the slot before it takes its snapshot, so it finds the body in one of both. Rejects as `Server.write` does.
 */
export async function bodiesOf(
  server: Server,
  deliveries: readonly InSlot[],
): Promise<ReadonlyMap<number, Uint8Array>> {
  const bySlot = Map.groupBy(deliveries, ({ slot }) => slot);
  const found = await Promise.all(
    Array.from(bySlot, ([slot, all]) => server.write(readFrom(slot), [all.map(({ seq }) => seq)])),
  );
  return new Map(found.flat() as unknown as readonly (readonly [number, Uint8Array])[]);
}

const readFrom = (slot: number) => ({
  name: `bodies-${slot}`,
  text: `
    SELECT d.seq, coalesce(d.body, b.body)
    FROM deliveries AS d LEFT JOIN delivery_bodies_${slot} AS b ON b.slot = ${slot} AND b.seq = d.seq
    WHERE d.seq = ANY ($1::bigint[])`,
});
