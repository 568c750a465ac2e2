import { describeValue } from '../../core/quote.ts';
import { formatDefault, type Option } from './option.ts';

/** A parsed value, or the problem in one line. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** The place of a value, for messages. */
export interface Place {
  /** Its name: `--rest-port`, `REST_PORT`, `portico.config.ts: rest.port`. */
  readonly name: string;
  /** How to remove it: `unset it`, `leave it out`. */
  readonly drop: string;
}

/** Parses the text of a flag or variable. */
export function parseText(option: Option<unknown>, place: Place, text: string): Parsed {
  return accept(option, place, text, option.kind.fromText(text));
}

/** Parses a value of the configuration module. */
export function parseValue(option: Option<unknown>, place: Place, given: unknown): Parsed {
  return accept(option, place, given, option.kind.fromValue(given));
}

function accept(option: Option<unknown>, place: Place, given: unknown, value: unknown): Parsed {
  // Blanks match the patterns of some texts.
  if (typeof given === 'string' && given.trim() === '' && option.kind.fromText('') === undefined) {
    return { problem: empty(option, place) };
  }
  if (value !== undefined) return { value };
  const but = option.secret ? '' : `, not ${describeValue(given)}`;
  return { problem: `${place.name} must be ${option.kind.expected}${but}` };
}

function empty(option: Option<unknown>, place: Place): string {
  if (option.default !== undefined) {
    return `${place.name} is empty; ${place.drop} for the default (${formatDefault(option)})`;
  }
  const remedy = option.secret ? `${place.drop} to leave the door unsecured` : place.drop;
  return `${place.name} is empty; ${remedy}`;
}
