/** The header fields of a reply's head by name, without those that Node adds: Date and what follows it. */
export function parseReplyHead(head: string): Readonly<Record<string, string>> {
  const [, ...lines] = head.slice(0, head.indexOf('\r\nDate: ')).split('\r\n');
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
}
