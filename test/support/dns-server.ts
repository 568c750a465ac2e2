import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

/** A DNS server on this machine, over UDP. */
export interface DnsServer extends AsyncDisposable {
  /** As `setServers` takes it. */
  readonly address: string;
  /** The questions so far, such as `A example.com`. */
  asked(): readonly string[];
}

interface DnsOptions {
  /** Questions of this type get no answer. */
  readonly silentFor?: 'A' | 'AAAA' | 'all';
  /** Every answer is SERVFAIL. */
  readonly failing?: boolean;
}

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };
const TTL = 60;
const SERVFAIL = 2;
const NXDOMAIN = 3;

/** A server that knows these names. */
export async function startDns(
  names: Readonly<Record<string, readonly string[]>>,
  { silentFor, failing = false }: DnsOptions = {},
): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (message, from) => {
    const { name, type, end } = questionOf(message);
    asked.push(`${type} ${name}`);
    if (silentFor === 'all' || silentFor === type) return;
    const known = names[name];
    const addresses = failing ? [] : (known ?? []).filter((each) => isIPv6(each) === (type === 'AAAA'));
    const code = failing ? SERVFAIL : known === undefined ? NXDOMAIN : 0;
    const head = Buffer.from(message.subarray(0, 12));
    // A response, recursion available; one question, as many answers as there are.
    head.writeUInt16BE(0x8180 | code, 2);
    for (const [at, count] of [1, addresses.length, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * at);
    socket.send(
      Buffer.concat([head, message.subarray(12, end), ...addresses.map(answer)]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

/** A server that never answers. */
export const silentDns = (): Promise<DnsServer> => startDns({}, { silentFor: 'all' });

function questionOf(message: Buffer) {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = TYPES[message.readUInt16BE(at + 1)] ?? 'A';
  return { name: labels.join('.').toLowerCase(), type, end: at + 5 };
}

function answer(address: string): Buffer {
  const bytes = isIPv6(address) ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number));
  const head = Buffer.alloc(12);
  // The name is that of the question, at byte 12.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(isIPv6(address) ? 28 : 1, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(TTL, 6);
  head.writeUInt16BE(bytes.length, 10);
  return Buffer.concat([head, bytes]);
}

function ipv6Bytes(address: string): Buffer {
  const [left = '', right = ''] = address.split('::');
  const groups = (text: string) =>
    (text === '' ? [] : text.split(':')).map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(left), groups(right)];
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
