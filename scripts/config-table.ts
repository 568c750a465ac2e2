/** Writes the table of options into README.md; `[--check] [file]` as in marked-section.ts. */
import { renderMarkdownTable } from '../src/config/options-table.ts';
import { runSectionScript } from './marked-section.ts';

runSectionScript({
  name: 'options',
  file: 'README.md',
  content: renderMarkdownTable(),
  script: 'scripts/config-table.ts',
});
