import type { ErrorFormat } from '../http/error-format.ts';

/** Every reply of this door is plain text (contract 4.4). */
export const TEXT_TYPE = 'text/plain; charset=utf-8';

/** The reply to a stored delivery (contract 4.4). */
export const ACKNOWLEDGED = 'Webhook received';

/** A refusal of this door is its message as plain text. */
export const webhookErrors: ErrorFormat = {
  contentType: TEXT_TYPE,
  body: (problem) => problem.message,
};
