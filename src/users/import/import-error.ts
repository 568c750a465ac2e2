import { ExpectedError } from '../../core/expected-error.ts';

/** An import cannot go on; the message says why. What was stored before stays, unless it is one transaction. */
export class ImportError extends ExpectedError {
  override readonly name = 'ImportError';
  readonly code:
    | 'INVALID_IMPORT'
    | 'IMPORT_TOO_LARGE'
    | 'IMPORT_IN_PROGRESS'
    | 'IMPORT_KEY_REUSED'
    | 'LINE_TOO_LONG';
  /** Where it stopped; undefined when that is no line. */
  readonly line: number | undefined;

  constructor(code: ImportError['code'], message: string, line?: number) {
    super(message);
    this.code = code;
    this.line = line;
  }
}

/** The error of an import whose position another one has moved. */
export function importInProgress(): ImportError {
  return new ImportError('IMPORT_IN_PROGRESS', 'Another request or command imports under the same key');
}
