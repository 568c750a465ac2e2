import * as v from 'valibot';
import { pointerField } from '../../config/schema/fields.ts';
import { type Given, namedOf } from '../../config/schema/given.ts';
import { readObject } from '../../config/schema/read-object.ts';
import type { TransformData } from '../../config/schema/webhook-transform.ts';
import { parsePointer, valueAt } from '../../core/json-pointer.ts';
import { isRecord } from '../../core/record.ts';
import type { DeliveryTransform } from '../../inbox/rules/transform.ts';
import { headerTemplate } from './header-template.ts';
import { headerProblem } from './sent-headers.ts';

const POINTER = 'must be a JSON pointer such as /data/id';
const TEMPLATE =
  'must be a text; braces only as in {id}, {event}, {senderEvent}, {source} and {/a/json/pointer}';

const dataSchema = v.object(
  { body: v.optional(v.unknown()), headers: v.optional(v.unknown()) },
  'must be an object with body or headers',
);

/** Checks a transformation that is data. Appends one line per problem to `problems`. */
export function checkTransform(owner: Given, problems: string[]): void {
  const value = isRecord(owner.value) ? owner.value.transform : undefined;
  if (!isRecord(value)) return;
  const given = { value, path: `${owner.path}.transform` };
  readObject(dataSchema, given, problems);
  const body = { value: value.body, path: `${given.path}.body` };
  const pointers = isRecord(body.value) ? namedOf(body, 'JSON pointers', problems) : [body];
  for (const { value, path } of pointers) {
    if (value !== undefined && !v.is(pointerField(POINTER), value)) problems.push(`${path} ${POINTER}`);
  }
  const headers = { value: value.headers, path: `${given.path}.headers` };
  for (const { name, value, path } of namedOf(headers, 'texts', problems)) {
    const problem = headerProblem(name);
    if (problem !== undefined) problems.push(`${path} ${problem}`);
    if (typeof value !== 'string' || headerTemplate(value) === undefined)
      problems.push(`${path} ${TEMPLATE}`);
  }
}

/** Prepares a valid transformation that is data. It throws when the part that is to be sent is missing. */
export function dataTransform({ body, headers = {} }: TransformData): DeliveryTransform {
  const pick = body === undefined ? undefined : picker(body);
  const templates = Object.entries(headers).flatMap(([name, text]) => {
    const fill = headerTemplate(text);
    return fill === undefined ? [] : [[name, fill] as const];
  });
  return (delivery) => {
    const filled = templates.flatMap(([name, fill]) => {
      const value = fill(delivery);
      return value === undefined ? [] : [[name, value] as const];
    });
    const set = Object.fromEntries(filled);
    if (pick === undefined) return { headers: set };
    // As bytes, because a picked text is sent as JSON too.
    const body = Buffer.from(JSON.stringify(pick(delivery.body)));
    return { body, headers: { 'content-type': 'application/json', ...set } };
  };
}

function picker(pointers: NonNullable<TransformData['body']>): (body: unknown) => unknown {
  if (typeof pointers === 'string') {
    const pointer = parsePointer(pointers) ?? [];
    return (body) => {
      const value = valueAt(body, pointer);
      if (value === undefined) throw new Error(`transform: the body has nothing at ${pointers}`);
      return value;
    };
  }
  const members = Object.entries(pointers).map(([name, text]) => [name, parsePointer(text) ?? []] as const);
  return (body) => Object.fromEntries(members.map(([name, pointer]) => [name, valueAt(body, pointer)]));
}
