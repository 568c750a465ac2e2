/** One member of an Accept or Accept-Encoding header: its name in lower case and its weight from 0 to 1. */
export interface Weighted {
  readonly name: string;
  readonly weight: number;
}

const weightPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

function weightOf(parameters: readonly string[]): number | undefined {
  for (const parameter of parameters) {
    const [key, value] = parameter.split('=', 2);
    if (key?.trim().toLowerCase() !== 'q') continue;
    const text = value?.trim() ?? '';
    return weightPattern.test(text) ? Number(text) : undefined;
  }
  return 1;
}

/**
 * Splits a header like `text/html, *\/*;q=0.8` into its members, in their order. Parameters other than
 * the weight are ignored. A member without a name or with a weight that is no q-value is left out.
 */
export function parseWeightedList(header: string): readonly Weighted[] {
  const members: Weighted[] = [];
  for (const member of header.split(',')) {
    const [name = '', ...parameters] = member.split(';');
    const weight = weightOf(parameters);
    if (name.trim() !== '' && weight !== undefined) {
      members.push({ name: name.trim().toLowerCase(), weight });
    }
  }
  return members;
}
