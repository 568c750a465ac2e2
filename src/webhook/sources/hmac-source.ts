import * as v from 'valibot';
import { sourceSchemas } from '../../config/schema/webhook-sources.ts';
import { readTemplate } from '../schemes/template.ts';

const TEMPLATE = 'must be ASCII text with {body} once, and {timestamp} and {header:NAME} as needed';

const templateField = v.pipe(
  v.string(TEMPLATE),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const template = readTemplate(dataset.value);
    if (template === undefined) addIssue({ message: TEMPLATE });
    return template ?? NEVER;
  }),
);

const { entries, message } = sourceSchemas.hmac;

/**
 * A source of the scheme hmac, with its template parsed. A rule about two fields is skipped while one of them is
 * invalid.
 */
export const hmacSchema = v.pipe(
  v.object({ ...entries, template: v.optional(templateField) }, message),
  v.forward(
    v.partialCheck(
      [['tolerance'], ['timestampHeader']],
      ({ tolerance, timestampHeader }) => tolerance === undefined || timestampHeader !== undefined,
      'needs timestampHeader, the header with the time of a request',
    ),
    ['tolerance'],
  ),
  v.forward(
    v.partialCheck(
      [['template'], ['timestampHeader']],
      ({ template, timestampHeader }) => timestampHeader === undefined || template?.usesTimestamp !== false,
      'must have {timestamp}: a time that is not signed proves nothing',
    ),
    ['template'],
  ),
  v.forward(
    v.partialCheck(
      [['template'], ['timestampHeader']],
      ({ template, timestampHeader }) => timestampHeader !== undefined || template?.usesTimestamp !== true,
      'has {timestamp}, which needs timestampHeader',
    ),
    ['template'],
  ),
);
