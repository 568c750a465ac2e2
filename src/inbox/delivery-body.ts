import { isFormType, parseFormBody } from '../http/body/form-body.ts';
import { parseJsonBody, parseJsonText } from '../http/body/json-body.ts';
import type { StoredDelivery } from './delivery.ts';

const SPACES: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20]);

/**
 * What the body of a delivery says, from what is stored of it alone, so that it says the same at every attempt.
 * /webhook itself takes JSON whatever its label is (contract 4.4). Signed sources may also send forms: the JSON in the
 * field `payload`, as GitHub and Slack put it, or the fields as an object. Throws an HttpProblem with status 400.
 */
export function parseDeliveryBody({
  source,
  contentType,
  body,
}: Pick<StoredDelivery, 'source' | 'contentType' | 'body'>): unknown {
  if (source === '' || !isFormType(contentType) || beginsLikeJson(body)) return parseJsonBody(body);
  const fields = parseFormBody(body);
  const { payload } = fields;
  return typeof payload === 'string' && /^\s*\{/.test(payload) ? parseJsonText(payload) : fields;
}

/** Some clients call everything a form that they are not told the type of. */
function beginsLikeJson(body: Uint8Array): boolean {
  const first = body.find((byte) => !SPACES.has(byte));
  return first === 0x7b || first === 0x5b;
}
