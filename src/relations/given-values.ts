import { randomUUID } from 'node:crypto';
import type { Codec } from './codec.ts';
import { codecOf } from './codecs.ts';
import { type Column, isComputed, type Value } from './relation.ts';
import { isAddress } from './user.ts';

/** How many faults a refusal lists, how many that of a line of an import lists, and how many its message has. */
export const MAX_FAULTS = { listed: 100, ofLine: 10, told: 3 } as const;

/** Maximum size of a row in bytes: that of a body. */
export const MAX_ROW = 1024 * 1024;

/** The fault of a row that has too many bytes. */
export function tooLargeRow(pointer: string): { readonly detail: string; readonly pointer: string } {
  return { detail: `a row has at most ${MAX_ROW.toLocaleString('en-US')} bytes (row)`, pointer };
}

/** The size of the values of a row in bytes. */
export function sizeOfRow(values: readonly unknown[]): number {
  let bytes = 0;
  for (const value of values) {
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else bytes += value instanceof Uint8Array ? value.length : 8;
  }
  return bytes;
}

/** How many more unknown names get a proposal, which costs milliseconds among many long names. */
export interface Proposals {
  left: number;
}

/** A name that a client has made up may be as long as its body. */
const MAX_POINTED = 200;

/** The pointer of a member; `at` is that of its row. */
export function pointerTo(at: string, name: string): string {
  const text = name.length > MAX_POINTED ? `${name.slice(0, MAX_POINTED)}\u{2026}` : name;
  return `${at}/${encodeURIComponent(text.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'))}`;
}

/** The faults of a row, to which one is added. */
interface Faults {
  push(fault: { readonly detail: string; readonly pointer: string; readonly code?: 'NOT_ALLOWED' }): unknown;
}

/** The codec of a column for values that clients give: those of some texts have a form besides. */
export function givenCodec({ type }: Column): Codec {
  const codec = codecOf(type);
  if (type.kind !== 'text' || type.form === undefined) return codec;
  const inForm = (parsed: ReturnType<Codec['parse']>) => {
    const problem = 'value' in parsed ? formProblem(type, String(parsed.value)) : undefined;
    return problem === undefined ? parsed : { problem };
  };
  return {
    ...codec,
    parse: (given) => inForm(codec.parse(given)),
    parseText: (text) => inForm(codec.parseText(text)),
  };
}

function formProblem(
  { form, max }: Extract<Column['type'], { readonly kind: 'text' }>,
  text: string,
): string | undefined {
  if (text.trim() === '') return 'must not be blank';
  if (text.length > max) return `must have at most ${max} characters`;
  return form === 'address' && !isAddress(text) ? 'must have an @ between other characters' : undefined;
}

/** Whether the service alone gives a column its value: a number, or one that it computes. */
export function isAssigned(column: Column): boolean {
  const { type } = column;
  return isComputed(column) || (type.kind === 'serial' && !type.open);
}

/** Why a client cannot write a column that the service assigns; undefined if it can. */
export function assigned(column: Column): string | undefined {
  if (!isAssigned(column)) return undefined;
  const how = isComputed(column) ? 'computed from other columns' : 'assigned by the service';
  return `"${column.name}" is ${how}; leave it out`;
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
export function absentValue(column: Column, caller: string | undefined, at: string, faults: Faults): Value {
  const { name, type, nullable, default: standard } = column;
  const refuse = (problem: string): Value => {
    faults.push({ detail: `"${name}" ${problem}`, pointer: pointerTo(at, name) });
    return null;
  };
  switch (standard?.kind) {
    case undefined:
      return nullable || type.kind === 'serial' || isComputed(column) ? null : refuse('is missing');
    case 'value':
      return standard.value;
    case 'database':
      return null;
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

/** A part of a path without its percent-encoding; undefined if that is broken. */
export function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
