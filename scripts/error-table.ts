/** Writes the table of error codes into docs/ERRORS.md; `[--check] [file]` as in marked-section.ts. */
import { ERROR_CODES, type ErrorInfo } from '../src/core/error-codes.ts';
import { runSectionScript } from './marked-section.ts';

const rows = Object.entries<ErrorInfo>(ERROR_CODES)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([code, { status, text }]) => `| \`${code}\` | ${status ?? ''} | ${text} |`);

runSectionScript({
  name: 'error-codes',
  file: 'docs/ERRORS.md',
  content: ['| Code | Status | Meaning and remedy |', '| --- | --- | --- |', ...rows].join('\n'),
  script: 'scripts/error-table.ts',
});
