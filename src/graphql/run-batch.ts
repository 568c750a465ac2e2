import type { MaybePromise } from '../core/maybe-promise.ts';
import { HttpProblem } from '../http/problem.ts';
import { graphqlErrors } from './graphql-errors.ts';
import { type Batch, paramsFromBody, type RequestParams } from './request-params.ts';

/** The JSON of one result. */
type ResultText = string | Buffer;

/**
 * Runs the operations of a batch side by side and answers with a list of their results in the same order. What is wrong
 * with one of them is its own result, and `onRefused` gets it; throws HttpProblem for a batch that is refused as a whole, of which nothing runs.
 */
export function runBatch(
  batch: Batch,
  maxBatch: number,
  run: (params: RequestParams) => MaybePromise<ResultText>,
  onRefused?: (refusal: HttpProblem) => void,
): MaybePromise<ResultText> {
  refuseLarge(batch.length, maxBatch);
  if (!batch.every((entry) => typeof entry === 'object' && entry !== null && !Array.isArray(entry))) {
    throw new HttpProblem(400, 'MALFORMED_REQUEST', 'Each operation of a batch must be a JSON object');
  }
  const texts = batch.map((entry) => {
    try {
      return run(paramsFromBody(entry));
    } catch (error) {
      if (!(error instanceof HttpProblem)) throw error;
      onRefused?.(error);
      return graphqlErrors.body(error, undefined);
    }
  });
  return texts.some((text) => text instanceof Promise)
    ? Promise.all(texts).then(listOf)
    : listOf(texts as readonly ResultText[]);
}

function refuseLarge(length: number, maxBatch: number): void {
  if (maxBatch === 0) {
    throw new HttpProblem(400, 'BATCH_REFUSED', 'Batching is off; send one operation per request (maxBatch)');
  }
  if (length === 0) throw new HttpProblem(400, 'MALFORMED_REQUEST', 'The batch is empty');
  if (length > maxBatch) {
    const message = `The batch has ${length} operations; at most ${maxBatch} are allowed (maxBatch)`;
    throw new HttpProblem(400, 'BATCH_REFUSED', message);
  }
}

function listOf(texts: readonly ResultText[]): ResultText {
  if (texts.every((text) => typeof text === 'string')) return `[${texts.join()}]`;
  const parts = texts.flatMap((text, index) => [Buffer.from(index === 0 ? '[' : ','), Buffer.from(text)]);
  return Buffer.concat([...parts, Buffer.from(']')]);
}
