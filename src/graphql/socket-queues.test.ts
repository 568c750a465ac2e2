import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Frames } from './socket-queues.ts';

interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly length: number;
  readonly isMasked: boolean;
  /** Whether the length is written longer than it has to be. */
  readonly isLong: boolean;
}

function bytesOf({ opcode, isFinal, length, isMasked, isLong }: Frame): Buffer {
  const extended = length > 65_535 || isLong ? 8 : length > 125 ? 2 : 0;
  const head = Buffer.alloc(2 + extended + (isMasked ? 4 : 0), 0xff);
  head[0] = (isFinal ? 0x80 : 0) | opcode;
  head[1] = (isMasked ? 0x80 : 0) | (extended === 8 ? 127 : extended === 2 ? 126 : length);
  if (extended === 8) head.writeBigUInt64BE(BigInt(length), 2);
  else if (extended === 2) head.writeUInt16BE(length, 2);
  // Any payload: what looks like a header in it is none.
  return Buffer.concat([head, Buffer.alloc(length, 0x81)]);
}

const frame = fc.record({
  length: fc.oneof(fc.nat(3), fc.constantFrom(125, 126, 127, 65_535, 65_536)),
  isMasked: fc.boolean(),
  isLong: fc.boolean(),
});
const control = frame.map((each) => [
  { ...each, length: Math.min(each.length, 125), isLong: false, opcode: 0x9, isFinal: true },
]);
/** A message in one frame or several, with control frames between them. */
const message = fc
  .tuple(fc.array(frame, { minLength: 1, maxLength: 4 }), fc.array(control, { maxLength: 2 }))
  .map(([parts, between]) =>
    parts.flatMap((part, i) => [
      { ...part, opcode: i === 0 ? 0x1 : 0x0, isFinal: i === parts.length - 1 },
      ...(i < parts.length - 1 ? (between[i] ?? []) : []),
    ]),
  );

test('it is known at each byte what is open and how much has ended, however the bytes are cut', () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.array(fc.oneof(message, control), { maxLength: 6 }), cuts, (messages, sizes) => {
      const all = messages.flat();
      const bytes = Buffer.concat(all.map(bytesOf));
      // What holds behind each frame.
      const ends: { readonly at: number; readonly ended: number; readonly fragments: number }[] = [];
      let [at, ended, fragments] = [0, 0, 0];
      for (const each of all) {
        at += bytesOf(each).length;
        if (each.opcode >= 8) ended++;
        else if (each.isFinal) [ended, fragments] = [ended + 1, 0];
        else fragments++;
        ends.push({ at, ended, fragments });
      }
      const frames = new Frames();
      let total = 0;
      for (let start = 0, nth = 0; start < bytes.length; nth++) {
        const end = Math.min(bytes.length, start + (sizes[nth % sizes.length] ?? 1));
        total += frames.advance(bytes.subarray(start, end));
        const last = ends.findLast(({ at }) => at <= end) ?? { at: 0, ended: 0, fragments: 0 };
        assert.equal(total, last.ended);
        assert.equal(frames.fragments, last.fragments);
        const isOpen = last.at < end || last.fragments > 0;
        assert.equal(frames.isOpen, isOpen);
        // Where the last thing began that was not open before.
        const began = ends.findLast(({ at, fragments }) => at <= end && fragments === 0)?.at ?? 0;
        if (isOpen) assert.equal(frames.isNew, began >= start);
        start = end;
      }
    }),
    { numRuns: 300 },
  );
});
