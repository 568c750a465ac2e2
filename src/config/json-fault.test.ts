import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jsonFault } from './module.ts';

test('the fault is where the text stops being JSON', () => {
  const faults: readonly (readonly [text: string, fault: number])[] = [
    ['{"a": hunter2}', 6],
    ["{'a':1}", 1],
    ['{"a":1,}', 7],
    ['{"a":1} // x', 8],
    ['// c\n{}', 0],
    ['{"a":"x\ny"}', 7],
    ['{"a":01}', 6],
    ['{"a":"\\q"}', 7],
    ['[1 2]', 3],
    ['{"a" 1}', 5],
    ['}', 0],
    ['{"a": nulL}', 9],
    ['{"a":1', 6],
    ['"abc', 4],
    ['tru', 3],
    ['', 0],
    [' \n', 2],
  ];
  for (const [text, fault] of faults) assert.equal(jsonFault(text), fault, JSON.stringify(text));
});

test('what stands before the fault can be completed, and what includes it cannot', () => {
  const broken = fc
    .tuple(
      fc.json({ maxDepth: 3 }),
      fc.nat(),
      fc.constantFrom('x', '}', ']', ',', ':', '"', '\\', '\n', "'", '-', '0'),
    )
    .map(([text, at, letter]) => {
      const index = at % (text.length + 1);
      return text.slice(0, index) + letter + text.slice(index);
    })
    .filter((text) => !isJson(text));
  fc.assert(
    fc.property(broken, (text) => {
      const fault = jsonFault(text);
      assert.ok(fault >= 0 && fault <= text.length);
      // An oracle of its own: JSON.parse names a position in most of its messages.
      const position = positionOf(text);
      if (position !== undefined) assert.equal(fault, position);
    }),
    { numRuns: 1_000 },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function positionOf(text: string): number | undefined {
  try {
    JSON.parse(text);
  } catch (error) {
    const position = error instanceof SyntaxError ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
    return position === undefined ? undefined : Number(position);
  }
  return undefined;
}
