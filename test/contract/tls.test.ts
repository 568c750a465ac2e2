import { after, before, describe, test } from 'node:test';
import { makeCertificate, writeCertificate } from '../support/certificates.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { checks } from './catalogue.ts';
import type { Subject } from './check.ts';
import { openSubject } from './subject.ts';

/** The checks that any service will do for. */
const shared = checks.filter(({ needs }) => needs === undefined || Object.keys(needs).length === 0);

describe('the contract over TLS', () => {
  const resources = new AsyncDisposableStack();
  let subject: Subject | undefined;
  before(async () => {
    const folder = resources.use(await temporaryFolder());
    const env = await writeCertificate(folder.path, makeCertificate('localhost'));
    subject = resources.use(await openSubject({ transport: 'socket', database: 'memory', env }, {}));
  });
  after(() => resources.disposeAsync());
  for (const check of shared) {
    test(`${check.id} [TLS] ${check.title} (${check.heading})`, async () => {
      if (subject === undefined) throw new Error('the service did not start');
      await check.run(subject);
    });
  }
});
