/** A term, or a function with its arguments; a value before `|` becomes the last argument. */
export type Term =
  | { readonly kind: 'literal'; readonly value: string | number | boolean }
  | { readonly kind: 'path'; readonly from: string; readonly keys: readonly string[] }
  | { readonly kind: 'call'; readonly name: string; readonly given: readonly Term[] };
export type Pipeline = readonly Term[];

/** A part of a template. */
export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly value: Pipeline }
  | { readonly kind: 'define'; readonly name: string; readonly body: readonly Part[] }
  | {
      readonly kind: 'if' | 'with' | 'range';
      /** The names in `range $key, $value :=`. */
      readonly names: readonly string[];
      readonly value: Pipeline;
      readonly body: readonly Part[];
      readonly otherwise: readonly Part[];
    };

/** Splits into text and actions; `{{-` and `-}}` also remove the adjacent white space. */
function split(source: string): readonly { readonly text: string; readonly action?: string }[] {
  const parts = source.split(/(\s*\{\{- |\{\{)((?:\/\*.*?\*\/|"[^"]*"|[^"])*?)( -\}\}\s*|\}\})/s);
  const pieces: { text: string; action?: string }[] = [];
  for (let at = 0; at < parts.length; at += 4) {
    const action = parts[at + 2];
    pieces.push({ text: parts[at] ?? '', ...(action === undefined ? {} : { action: action.trim() }) });
  }
  return pieces;
}

/** Parses the subset of Go templates that the chart uses; throws on everything else. */
export function parseTemplate(source: string): readonly Part[] {
  const pieces = split(source);
  let at = 0;
  function body(): { readonly parts: readonly Part[]; readonly end: string | undefined } {
    const parts: Part[] = [];
    for (; at < pieces.length; ) {
      const { text, action } = pieces[at++] ?? { text: '' };
      if (text !== '') parts.push({ kind: 'text', text });
      if (action === undefined || action.startsWith('/*')) continue;
      if (action === 'end' || action === 'else') return { parts, end: action };
      parts.push(partOf(action));
    }
    return { parts, end: undefined };
  }
  function partOf(action: string): Part {
    const [, word, rest = ''] = /^(define|if|with|range)\s+(.*)$/s.exec(action) ?? [];
    if (word === undefined) return { kind: 'print', value: parsePipeline(action) };
    const inner = body();
    const otherwise = inner.end === 'else' ? body() : undefined;
    if ((otherwise ?? inner).end !== 'end') throw new Error(`{{ ${action} }} has no end`);
    if (word === 'define') return { kind: 'define', name: JSON.parse(rest), body: inner.parts };
    const [, names = '', value = rest] = /^(\$\w+(?:, \$\w+)?) := (.*)$/s.exec(rest) ?? [];
    return {
      kind: word as 'if' | 'with' | 'range',
      names: names === '' ? [] : names.split(', '),
      value: parsePipeline(value),
      body: inner.parts,
      otherwise: otherwise?.parts ?? [],
    };
  }
  const whole = body();
  if (whole.end !== undefined) throw new Error(`{{ ${whole.end} }} ends nothing`);
  return whole.parts;
}

function parsePipeline(source: string): Pipeline {
  return source.split(/ \| (?=(?:[^"]*"[^"]*")*[^"]*$)/).map((command) => {
    const words = command.match(/"[^"]*"|\S+/g) ?? [];
    const [first = '', ...rest] = words;
    if (/^[a-z]\w*$/i.test(first) && first !== 'true' && first !== 'false') {
      return { kind: 'call', name: first, given: rest.map(termOf) };
    }
    if (rest.length > 0) throw new Error(`${command} is not understood`);
    return termOf(first);
  });
}

function termOf(word: string): Term {
  if (/^(?:"[^"]*"|-?\d+|true|false)$/.test(word)) return { kind: 'literal', value: JSON.parse(word) };
  const [, from, keys] = /^(\$\w*)?((?:\.\w+)+|\.)?$/.exec(word) ?? [];
  if (word === '' || (from === undefined && keys === undefined)) throw new Error(`${word} is not understood`);
  return { kind: 'path', from: from ?? '.', keys: (keys ?? '').split('.').filter((key) => key !== '') };
}
