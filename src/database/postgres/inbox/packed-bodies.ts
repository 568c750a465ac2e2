/** Bodies concatenated to one value, with the 1-based offset and the length of each for `substring`. */
export interface PackedBodies {
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
  readonly bytes: Buffer;
}

/** Packs bodies for one parameter of a statement. */
export function packBodies(bodies: readonly Uint8Array[]): PackedBodies {
  const lengths = bodies.map(({ byteLength }) => byteLength);
  let next = 1;
  const starts = lengths.map((length) => {
    const start = next;
    next += length;
    return start;
  });
  return { starts, lengths, bytes: Buffer.concat(bodies) };
}
