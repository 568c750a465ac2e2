import { isFormType, parseFormBody } from '../http/body/form-body.ts';
import { parseJsonBody, parseJsonText } from '../http/body/json-body.ts';
import type { StoredDelivery } from './delivery.ts';

const WHITESPACE: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20]);

/**
 * Parses the body of a delivery. It depends on the stored delivery alone, so every attempt gets the same value.
 * /webhook itself accepts JSON with any content type (contract 4.4). Signed sources may also send forms: the JSON in
 * the field `payload`, as GitHub and Slack send it, or the fields as an object. Throws an HttpProblem with status 400.
 */
export function parseDeliveryBody({
  source,
  contentType,
  body,
}: Pick<StoredDelivery, 'source' | 'contentType' | 'body'>): unknown {
  if (source === '' || !isFormType(contentType) || startsLikeJson(body)) return parseJsonBody(body);
  const fields = parseFormBody(body);
  const { payload } = fields;
  return typeof payload === 'string' && /^\s*\{/.test(payload) ? parseJsonText(payload) : fields;
}

/** Some clients, curl among them, label every body without an explicit type as a form. */
function startsLikeJson(body: Uint8Array): boolean {
  const first = body.find((byte) => !WHITESPACE.has(byte));
  return first === 0x7b || first === 0x5b;
}
