import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { constants, inflateSync } from 'node:zlib';

// An index (version 2): a header, 256 counts of names by their first byte, the sorted names, a checksum each,
// an offset each, and the offsets that do not fit into 31 bits.
const MAGIC = 0xff744f63;
const FANOUT = 8;
const NAMES = FANOUT + 256 * 4;
const NAME_BYTES = 20;
const COMMIT = 1;
/** More than the head of any commit takes. */
const HEAD_BYTES = 4_096;

/**
 * The beginning of a commit among the packs of a repository. Undefined when it is not there, or when it is
 * only there as the difference to another one.
 */
export function readPackedCommit(folder: string, id: string): string | undefined {
  try {
    for (const name of readdirSync(folder)) {
      if (!name.endsWith('.idx')) continue;
      const offset = withFile(join(folder, name), (read) => offsetIn(read, Buffer.from(id, 'hex')));
      const pack = join(folder, name.replace(/idx$/, 'pack'));
      if (offset !== undefined) return withFile(pack, (read) => commitAt(read, offset));
    }
  } catch {
    // Damaged, or of a kind that is not known here.
  }
  return undefined;
}

type Read = (position: number, length: number) => Buffer;

function withFile<T>(path: string, use: (read: Read) => T): T {
  const file = openSync(path, 'r');
  try {
    return use((position, length) => {
      const buffer = Buffer.alloc(length);
      return buffer.subarray(0, readSync(file, buffer, 0, length, position));
    });
  } finally {
    closeSync(file);
  }
}

function offsetIn(read: Read, id: Buffer): number | undefined {
  const header = read(0, FANOUT);
  if (header.readUInt32BE(0) !== MAGIC || header.readUInt32BE(4) !== 2 || id.length !== NAME_BYTES)
    return undefined;
  const counts = read(FANOUT, 256 * 4);
  const first = id.readUInt8(0);
  const from = first === 0 ? 0 : counts.readUInt32BE((first - 1) * 4);
  const count = counts.readUInt32BE(first * 4) - from;
  const total = counts.readUInt32BE(255 * 4);
  const names = read(NAMES + from * NAME_BYTES, count * NAME_BYTES);
  for (let i = 0; i < count; i++) {
    if (!names.subarray(i * NAME_BYTES, (i + 1) * NAME_BYTES).equals(id)) continue;
    const offsets = NAMES + total * (NAME_BYTES + 4);
    const offset = read(offsets + (from + i) * 4, 4).readUInt32BE();
    if (offset < 0x8000_0000) return offset;
    return Number(read(offsets + total * 4 + (offset - 0x8000_0000) * 8, 8).readBigUInt64BE());
  }
  return undefined;
}

function commitAt(read: Read, offset: number): string | undefined {
  const head = read(offset, HEAD_BYTES);
  let start = 0;
  // Type and size take a byte for as long as the highest bit says that more follow.
  while (head.readUInt8(start) >= 0x80) start++;
  if (((head.readUInt8(0) >> 4) & 7) !== COMMIT) return undefined;
  return inflateSync(head.subarray(start + 1), { finishFlush: constants.Z_SYNC_FLUSH }).toString();
}
