/** One member of an Accept or Accept-Encoding header: its name in lower case and its weight from 0 to 1. */
export interface Weighted {
  readonly name: string;
  readonly weight: number;
  /** As they were written, the weight among them; read by `parameterOf`. */
  readonly parameters: readonly string[];
}

const weightPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Splits a header like `text/html, *\/*;q=0.8` into its members, in their order. A member without a name or with a
 * weight that is no q-value is left out.
 */
export function parseWeightedList(header: string): readonly Weighted[] {
  const members: Weighted[] = [];
  for (const member of splitList(header, ',')) {
    const [first = '', ...parameters] = splitList(member, ';');
    const name = first.trim().toLowerCase();
    if (name === '' || name.includes('"')) continue;
    const weight = written(parameters, 'q') ?? '1';
    if (weightPattern.test(weight)) members.push({ name, weight: Number(weight), parameters });
  }
  return members;
}

/** The first parameter of that name, which is in lower case, without quotes; undefined when there is none. */
export function parameterOf({ parameters }: Weighted, name: string): string | undefined {
  const value = written(parameters, name);
  if (value?.startsWith('"') !== true) return value;
  return value.slice(1, value.endsWith('"') ? -1 : undefined).replace(/\\(.)/g, '$1');
}

function written(parameters: readonly string[], name: string): string | undefined {
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=');
    const key = equals === -1 ? parameter : parameter.slice(0, equals);
    if (key.trim().toLowerCase() === name) return equals === -1 ? '' : parameter.slice(equals + 1).trim();
  }
  return undefined;
}

/** Splits where no quoted string holds the separator (RFC 9110 5.6.4). */
export function splitList(text: string, separator: ',' | ';'): readonly string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') quoted = !quoted;
    else if (quoted) {
      if (c === '\\') i++;
    } else if (c === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
