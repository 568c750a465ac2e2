import type { SourceEdit } from './source-copy.ts';

/** Acknowledges deliveries before they are committed. */
export const earlyAcknowledgement: SourceEdit = {
  file: 'src/sql/sqlite/open.ts',
  from: 'inbox: sqliteInbox(reads, writer, observer),',
  to: `inbox: ((inbox) => {
      const append = inbox.append.bind(inbox);
      inbox.append = async (delivery) => {
        append(delivery).catch(() => {});
        return 'stored';
      };
      inbox.appendAndClaim = async (delivery) => ({ appended: await inbox.append(delivery), jobs: [] });
      return inbox;
    })(sqliteInbox(reads, writer, observer)),`,
};
