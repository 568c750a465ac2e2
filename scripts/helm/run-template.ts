import { createHash } from 'node:crypto';
import { stringify } from 'yaml';
import type { Part, Pipeline, Term } from './parse-template.ts';

/** The data of a template: `.` and the variables. */
type Scope = Readonly<Record<string, unknown>>;

/** Renders a template with the given data. Throws if a function or value is missing. */
export function runTemplate(
  parts: readonly Part[],
  data: unknown,
  defined: ReadonlyMap<string, readonly Part[]>,
): string {
  const indent = (text: unknown, by: unknown) => String(text).replace(/^/gm, ' '.repeat(Number(by)));
  const functions: Readonly<Record<string, (...given: readonly unknown[]) => unknown>> = {
    include: (name, on) => run(defined.get(String(name)) ?? fail(`no template ${name}`), { '.': on, $: on }),
    toYaml: (value) => stringify(value, { sortMapEntries: true }).trimEnd(),
    indent: (by, text) => indent(text, by),
    nindent: (by, text) => `\n${indent(text, by)}`,
    quote: (value) => JSON.stringify(String(value)),
    default: (other, value) => (isTrue(value) ? value : other),
    sha256sum: (text) => createHash('sha256').update(String(text)).digest('hex'),
  };

  function run(body: readonly Part[], scope: Scope): string {
    return body.map((part) => print(part, scope)).join('');
  }
  function print(part: Part, scope: Scope): string {
    if (part.kind === 'text') return part.text;
    if (part.kind === 'define') return '';
    const value = resultOf(part.value, scope);
    if (part.kind === 'print') return String(value);
    if (!isTrue(value)) return run(part.otherwise, scope);
    if (part.kind === 'if') return run(part.body, scope);
    if (part.kind === 'with') return run(part.body, { ...scope, '.': value });
    const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value as object).sort();
    return entries
      .map(([key, item]) => {
        const named = part.names.length === 2 ? [key, item] : [item];
        const variables = part.names.map((name, i) => [name, named[i]] as const);
        return run(part.body, { ...scope, '.': item, ...Object.fromEntries(variables) });
      })
      .join('');
  }
  function resultOf(pipeline: Pipeline, scope: Scope): unknown {
    return pipeline.reduce<readonly unknown[]>((before, term) => [evaluate(term, scope, before)], [])[0];
  }
  function evaluate(term: Term, scope: Scope, before: readonly unknown[]): unknown {
    if (term.kind === 'literal') return term.value;
    if (term.kind === 'call') {
      const called = functions[term.name] ?? fail(`no function ${term.name}`);
      return called(...term.given.map((each) => evaluate(each, scope, [])), ...before);
    }
    return term.keys.reduce((from, key) => memberOf(from, key), scope[term.from]);
  }
  return run(parts, { '.': data, $: data });
}

function memberOf(from: unknown, key: string): unknown {
  const found = (from as Readonly<Record<string, unknown>> | undefined)?.[key];
  return found === undefined ? fail(`no value .${key}`) : found;
}

/** Whether Go templates treat a value as true. */
function isTrue(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function fail(why: string): never {
  throw new Error(`The chart has ${why}`);
}
