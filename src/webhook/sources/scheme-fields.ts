import type { HmacParams } from '../schemes/hmac.ts';
import type { ChosenScheme, SchemeName } from '../schemes/schemes.ts';
import { bodyAlone, readTemplate, type Template, timestampAndBody } from '../schemes/template.ts';
import { DEFAULT_TOLERANCE } from '../schemes/timestamp.ts';
import { type Fields, field, headerName, wordField } from './fields.ts';

/** The fields that only some schemes have. */
export const schemeFields: Readonly<Record<SchemeName, readonly string[]>> = {
  standard: ['tolerance', 'headerPrefix'],
  github: [],
  stripe: ['tolerance'],
  slack: ['tolerance'],
  hmac: ['tolerance', 'header', 'algorithm', 'encoding', 'prefix', 'timestampHeader', 'template'],
  token: ['header'],
};

const HEADER = 'the name of a header';

/** Reads the parameters of a scheme. */
export function readScheme(scheme: SchemeName, fields: Fields): ChosenScheme {
  switch (scheme) {
    case 'standard': {
      const headerPrefix = field(
        fields,
        'headerPrefix',
        'webhook',
        'the first word of header names',
        headerName,
      );
      return { scheme, params: { headerPrefix, tolerance: tolerance(fields) } };
    }
    case 'github':
      return { scheme, params: {} };
    case 'stripe':
    case 'slack':
      return { scheme, params: { tolerance: tolerance(fields) } };
    case 'hmac':
      return { scheme, params: hmacParams(fields) };
    case 'token':
      return { scheme, params: { header: field(fields, 'header', 'x-webhook-token', HEADER, headerName) } };
  }
}

function tolerance(fields: Fields): number {
  return field(fields, 'tolerance', DEFAULT_TOLERANCE, 'a whole number of seconds, 0 for any time', seconds);
}

function seconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function hmacParams(fields: Fields): HmacParams {
  const { entries, path, problems } = fields;
  if (!entries.has('header')) problems.push(`${path}.header must be ${HEADER}: the one with the signature`);
  const timestampHeader = field<string | undefined>(fields, 'timestampHeader', undefined, HEADER, headerName);
  const timed = entries.has('timestampHeader');
  if (!timed && entries.has('tolerance'))
    problems.push(`${path}.tolerance needs timestampHeader, the header with the time of a request`);
  return {
    header: field(fields, 'header', '', HEADER, headerName),
    algorithm: wordField(fields, 'algorithm', ['sha256', 'sha512', 'sha1']),
    encoding: wordField(fields, 'encoding', ['hex', 'base64']),
    prefix: field(fields, 'prefix', '', 'a text of visible ASCII characters and spaces', asciiText),
    timestampHeader,
    tolerance: tolerance(fields),
    template: template(fields, timed),
  };
}

function asciiText(value: unknown): string | undefined {
  return typeof value === 'string' && /^[ -~]*$/.test(value) ? value : undefined;
}

function template(fields: Fields, timed: boolean): Template {
  const expected = 'ASCII text with {body} once, and {timestamp} and {header:NAME} as needed';
  const read = field(fields, 'template', timed ? timestampAndBody : bodyAlone, expected, (value) =>
    typeof value === 'string' ? readTemplate(value) : undefined,
  );
  const { path, problems } = fields;
  if (timed && !read.usesTimestamp)
    problems.push(`${path}.template must have {timestamp}: a time that is not signed proves nothing`);
  if (!timed && read.usesTimestamp)
    problems.push(`${path}.template has {timestamp}, which needs timestampHeader`);
  return read.fill;
}
