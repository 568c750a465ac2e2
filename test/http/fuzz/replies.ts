/** A reply as a client reads it. */
export interface Reply {
  readonly head: string;
  readonly body: string;
}

/** The replies of a connection, and what is left that is none: of a reply that is cut, or bytes in a wrong place. */
export function readReplies(text: string): { readonly replies: readonly Reply[]; readonly rest: string } {
  const replies: Reply[] = [];
  for (let rest = text; ; ) {
    const [head = ''] = /^HTTP\/1\.1 \d{3} [^\n]*\r\n(?:[\w-]+: [^\n]*\r\n)*\r\n/.exec(rest) ?? [];
    const end = head === '' ? -1 : head.length + bodyLength(head, rest.slice(head.length));
    if (head === '' || end > rest.length) return { replies, rest };
    replies.push({ head, body: rest.slice(head.length, end) });
    rest = rest.slice(end);
  }
}

function bodyLength(head: string, behind: string): number {
  // A reply to HEAD has the length alone.
  if (/^HTTP\/1\.1 (?:1\d\d|204|304) /.test(head) || behind.startsWith('HTTP/1.1 ') || behind === '')
    return 0;
  const length = /^content-length: (\d+)\r$/im.exec(head)?.[1];
  if (length !== undefined) return Number(length);
  // What HTTP/1.0 gets of a stream ends with the connection.
  if (!/^transfer-encoding: chunked\r$/im.test(head)) return behind.length;
  const end = behind.indexOf('\r\n0\r\n\r\n');
  return end === -1 ? Number.POSITIVE_INFINITY : end + '\r\n0\r\n\r\n'.length;
}
