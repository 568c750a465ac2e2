import { COMMON_HEADERS } from '../json-reply.ts';

/** The headers of a reply that is saved as a file: its name has the time, so that two can be compared. */
export function fileHeaders(extension: string): Readonly<Record<string, string>> {
  const time = new Date().toISOString().replaceAll(':', '-').replace(/\..*/, '');
  return {
    ...COMMON_HEADERS,
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="portico-${process.pid}-${time}.${extension}"`,
  };
}
