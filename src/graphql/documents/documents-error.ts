import { ExpectedError } from '../../core/expected-error.ts';

/** How many problems one message lists. */
const MAX_LISTED = 20;

/** The trusted documents cannot be used. */
export class DocumentsError extends ExpectedError {
  override readonly name = 'DocumentsError';
  readonly code = 'DOCUMENTS_INVALID';

  /** `problems`: one line each, with the file and the document. */
  constructor(problems: readonly string[], options?: ErrorOptions) {
    const listed = problems.slice(0, MAX_LISTED).map((problem) => `  - ${problem}`);
    const others = problems.length - listed.length;
    if (others > 0) listed.push(`  - and ${others} more`);
    super(`The trusted GraphQL documents cannot be used:\n${listed.join('\n')}`, options);
  }
}
