import { describeValue, quote } from '../../core/quote.ts';
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
  if (text.trim() === '' && !option.kind.emptyAllowed) return { problem: empty(option, place) };
  const value = option.kind.fromText(text);
  return value === undefined ? { problem: refused(option, place, quote(text)) } : { value };
}

/** Parses a value of the configuration module. */
export function parseValue(option: Option<unknown>, place: Place, given: unknown): Parsed {
  if (typeof given === 'string' && given.trim() === '' && !option.kind.emptyAllowed) {
    return { problem: empty(option, place) };
  }
  const value = option.kind.fromValue(given);
  return value === undefined ? { problem: refused(option, place, describeValue(given)) } : { value };
}

function refused(option: Option<unknown>, place: Place, given: string): string {
  const but = option.secret ? '' : `, not ${given}`;
  return `${place.name} must be ${option.kind.expected}${but}`;
}

function empty(option: Option<unknown>, place: Place): string {
  if (option.default !== undefined) {
    return `${place.name} is empty; ${place.drop} for the default (${formatDefault(option)})`;
  }
  const remedy = option.secret ? `${place.drop} to leave the door unsecured` : place.drop;
  return `${place.name} is empty; ${remedy}`;
}
