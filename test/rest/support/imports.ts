import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';

/** A line of a report, or of an export. */
export type ReportLine = Readonly<Record<string, unknown>>;

/** The lines of NDJSON. */
export function linesOf(text: string): readonly ReportLine[] {
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error(`The last line does not end: ${text.slice(-100)}`);
  return lines.map((line) => JSON.parse(line) as ReportLine);
}

/** An import whose body is written bit by bit. */
export interface OpenImport {
  readonly request: ClientRequest;
  /** The reply, which may come before the body ends. */
  readonly reply: Promise<IncomingMessage>;
}

/** Begins an import. */
export function openImport(url: string, headers: Readonly<Record<string, string>>): OpenImport {
  const sent = request(`${url}/users`, { method: 'POST', headers });
  const reply = once(sent, 'response').then(([response]) => response as IncomingMessage);
  reply.catch(() => {});
  sent.on('error', () => {});
  return { request: sent, reply };
}

/** Sends an import in chunks while its report is read; resolves to the report. */
export async function importTo(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<string> {
  const { request: sent, reply } = openImport(url, headers);
  sent.end(body);
  let text = '';
  for await (const chunk of (await reply).setEncoding('utf8')) text += chunk;
  return text;
}
