import { randomUUID } from 'node:crypto';
import { codecOf } from './codecs.ts';
import type { Column, Value } from './relation.ts';
import { pointerTo } from './row-bounds.ts';

/** The faults of a row, to which one is added. */
interface Faults {
  push(fault: { readonly detail: string; readonly pointer: string; readonly code?: 'NOT_ALLOWED' }): unknown;
}

/** The value that a new row gets from a claim of its creator. */
export function setValue(column: Column, value: Value | undefined, pointer: string, faults: Faults): Value {
  if (value !== undefined || column.nullable) return value ?? null;
  const detail = `the caller has no claim ${column.rules?.set} for "${column.name}"`;
  faults.push({ detail, pointer, code: 'NOT_ALLOWED' });
  return null;
}

/**
 * The value of a column that a new row does not have; adds a fault if it needs one. `caller` is the name of
 * who sends the row, `at` the pointer of the row.
 */
export function absentValue(
  { name, type, nullable, default: standard }: Column,
  caller: string | undefined,
  at: string,
  faults: Faults,
): Value {
  const refuse = (problem: string): Value => {
    faults.push({ detail: `"${name}" ${problem}`, pointer: pointerTo(at, name) });
    return null;
  };
  switch (standard?.kind) {
    case undefined:
      return nullable || type.kind === 'serial' ? null : refuse('is missing');
    case 'value':
      return standard.value;
    case 'v4':
      return randomUUID();
    case 'v7':
      return uuidV7(Date.now());
    case 'now':
      return type.kind === 'date' ? new Date().toISOString().slice(0, 10) : Date.now();
    case 'caller': {
      if (caller === undefined)
        return nullable ? null : refuse('is missing, and the request has no caller to take it from');
      const parsed = codecOf(type).parse(caller);
      return 'value' in parsed
        ? parsed.value
        : refuse(`would be the name of the caller, but ${parsed.problem}`);
    }
  }
}

/** A UUID of version 7 (RFC 9562 5.7): the time in milliseconds, then random bits. */
function uuidV7(time: number): string {
  const [, , , variant = '', node = ''] = randomUUID().split('-');
  const hex = time.toString(16).padStart(12, '0');
  const random = randomUUID().slice(0, 3);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${random}-${variant}-${node}`;
}
