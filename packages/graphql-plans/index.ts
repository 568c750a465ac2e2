export type { DocumentSource } from './documents.ts';
export { createFindOperation, type FindOperation, type Refused } from './executor.ts';
export { DEFAULT_LIMITS, type DocumentLimits } from './limits.ts';
export { Operation, type OperationMeters, type OperationOutcome } from './operation.ts';
export { type Batch, paramsFromBody, paramsOf, type RequestParams } from './request-params.ts';
export {
  DEFAULT_RESULT_LIMITS,
  Departure,
  isKind,
  maskErrors,
  maskOf,
  type Recipient,
  type ResultLimits,
  resultText,
  SharedRecipient,
} from './results.ts';
