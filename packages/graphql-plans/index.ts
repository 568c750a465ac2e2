export type { DocumentSource } from './documents.ts';
export { createFindOperation, type FindOperation, type Refused } from './executor.ts';
export type { DocumentLimits } from './limits.ts';
export { Operation, type OperationMeters, type OperationOutcome } from './operation.ts';
export {
  type CalledField,
  type FieldPlan,
  type FollowEvents,
  type ResolveSelection,
  type ResolveTogether,
  TO_RESOLVER,
  TogetherError,
} from './plans.ts';
export { type Batch, paramsFromBody, paramsOf, type RequestParams } from './request-params.ts';
export {
  ClientAbort,
  type ClientSignal,
  isKind,
  JsonText,
  maskErrors,
  maskOf,
  type ResultLimits,
  resultText,
  SharedClientSignal,
} from './results.ts';
