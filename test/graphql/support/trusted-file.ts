import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A file with trusted documents, and the setting that names it. */
export async function trustedFile(content: unknown) {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'documents.json');
  await writeFile(file, JSON.stringify(content));
  return {
    env: { GRAPHQL_DOCUMENTS: file },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
