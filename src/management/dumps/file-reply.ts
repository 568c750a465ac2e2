import type { Reply } from '../../http/endpoint.ts';
import { COMMON_HEADERS } from '../replies.ts';

/** Type and headers of a reply that is saved as a file. Its name holds the time, so that two can be compared. */
export function fileHead(extension: string): Pick<Reply, 'type' | 'headers'> {
  const time = new Date().toISOString().replaceAll(':', '-').replace(/\..*/, '');
  const disposition = `attachment; filename="portico-${process.pid}-${time}.${extension}"`;
  return {
    type: 'application/octet-stream',
    headers: { ...COMMON_HEADERS, 'content-disposition': disposition },
  };
}

/** A reply that is saved as a file and closes its connection. */
export function fileReply(extension: string, body: Reply['body']): Reply {
  const { type, headers } = fileHead(extension);
  return { status: 200, type, body, headers: { ...headers, connection: 'close' } };
}
