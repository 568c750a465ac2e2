import { printableLines } from '../../core/quote.ts';
import { hideSecrets, type SecretTexts } from '../../core/redaction.ts';

const NAMES = '(?:proxy-)?authorization|(?:set-)?cookie|x-webhook-token';
const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
/** A header among fields or in a list of names and values, in whatever object an error brought it. */
const FIELD = new RegExp(String.raw`("(?:${NAMES})"[:,])(?:${TEXT}|\[(?:${TEXT},?)*\])`, 'gi');
/** A header in a text, such as the head of a request. */
const HEAD = new RegExp(String.raw`(?<=\\n|\b)(${NAMES}): ?[^"\\]+`, 'gi');
/** A cheap test for the names above; few lines match. */
const SUSPICIOUS = /authorization|cookie|x-webhook-token/i;
const LITERALS = new RegExp(TEXT, 'g');
const NUMBER = /^[\d.eE+-]+$/;

/** Few lines have anything else. */
const PLAIN = /^[\x20-\x7e]*\n?$/;

/**
 * Creates the function that redacts a log line, which is one JSON object: the values of header fields with credentials,
 * at any depth, and the known secrets. What a terminal obeys is escaped in it, since people look at logs on one.
 */
export function lineCleaner(secrets: SecretTexts): (line: string) => string {
  let known: readonly string[] | undefined;
  let hide: (line: string) => string;
  return (line) => {
    if (secrets.texts !== known) {
      known = secrets.texts;
      hide = hiderOf(known);
    }
    const clean = SUSPICIOUS.test(line)
      ? hide(line.replace(FIELD, '$1"******"').replace(HEAD, '$1: ******'))
      : hide(line);
    return PLAIN.test(clean) ? clean : printableLines(clean);
  };
}

function hiderOf(secrets: readonly string[]): (line: string) => string {
  // In a line they stand as JSON writes them.
  const written = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  const hide = (text: string) => hideSecrets(text, written);
  // One that looks like a number must not be taken out of a number.
  if (!secrets.some((secret) => NUMBER.test(secret))) return hide;
  return (line) => line.replace(LITERALS, hide);
}
