/** One system call of the traced process that matters to what is on the disk, or that told a client something. */
export type Call =
  | { readonly kind: 'write'; readonly path: string; readonly offset: number; readonly data: Buffer }
  | { readonly kind: 'truncate'; readonly path: string; readonly size: number }
  | { readonly kind: 'sync'; readonly path: string; readonly failed: boolean }
  | { readonly kind: 'create'; readonly path: string }
  | { readonly kind: 'unlink'; readonly path: string }
  /** The bytes of a reply, by the x-request-id in it. */
  | { readonly kind: 'reply'; readonly requestId: string };

/** A call begins and ends; what it does happens somewhere in between. */
export interface Step {
  readonly phase: 'begin' | 'end';
  readonly call: Call;
}

/** What strace must be told so that `readTrace` understands what it writes. */
export const TRACE_WORDS = [
  '-f',
  '--seccomp-bpf',
  '-y',
  '-xx',
  ...['-s', '4000000'],
  ...['-e', 'trace=openat,write,writev,pwrite64,ftruncate,fsync,fdatasync,unlink,rename'],
];

const LINE = /^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$/s;
/** What strace says of a call in which the process ended. */
const NEVER_RETURNED = / = \?$/;
/** The files of the lock of a service, which hold no data. */
const LOCK = /-service(?:\.json)?$/;
const FD_PATH = /^\d+<([^>]*)>/;
const TEXT = /"((?:\\x[0-9a-f]{2})*)"/g;

/** The calls on files in `folder`, and the replies, in the order in which they began and ended. */
export function readTrace(trace: string, folder: string): readonly Step[] {
  const begun = new Map<string, { readonly args: string; readonly call: object }>();
  /** What each call turned out to be; nothing for those that failed or do not matter. */
  const calls = new Map<object, Call>();
  const order: { readonly phase: Step['phase']; readonly call: object }[] = [];

  for (const line of linesOf(trace)) {
    const [, thread = '', resumed, started, rest = ''] = LINE.exec(line) ?? [];
    const name = resumed ?? started;
    if (name === undefined) continue;
    if (started !== undefined) {
      const call = {};
      order.push({ phase: 'begin', call });
      if (rest.endsWith('<unfinished ...>')) {
        begun.set(thread, { args: rest.slice(0, -'<unfinished ...>'.length), call });
        continue;
      }
      if (!NEVER_RETURNED.test(rest)) order.push({ phase: 'end', call });
      const read = readCall(name, rest, folder);
      if (read !== undefined) calls.set(call, read);
      continue;
    }
    const open = begun.get(thread);
    begun.delete(thread);
    if (open === undefined) continue;
    if (!NEVER_RETURNED.test(rest)) order.push({ phase: 'end', call: open.call });
    const read = readCall(name, open.args + rest, folder);
    if (read !== undefined) calls.set(open.call, read);
  }
  return order.flatMap(({ phase, call: of }) => {
    const call = calls.get(of);
    return call === undefined ? [] : [{ phase, call }];
  });
}

function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    if (end === -1) return;
    yield text.slice(at, end);
    at = end + 1;
  }
}

/** `rest` is what follows the opening bracket: the arguments and the result. */
function readCall(name: string, rest: string, folder: string): Call | undefined {
  const equals = rest.lastIndexOf(' = ');
  const returned = NEVER_RETURNED.test(rest)
    ? Number.MAX_SAFE_INTEGER
    : Number.parseInt(rest.slice(equals + 3), 10);
  if (Number.isNaN(returned)) throw new Error(`no result: ${name}(${rest.slice(-200)}`);
  if (name === 'openat' || name === 'unlink' || name === 'rename') {
    const path = bytes(rest).toString();
    if (returned < 0 || !path.startsWith(`${folder}/`) || LOCK.test(path)) return undefined;
    if (name === 'rename') throw new Error(`nobody renames database files, but ${path} was`);
    if (name === 'unlink') return { kind: 'unlink', path };
    return rest.includes('O_CREAT') ? { kind: 'create', path } : undefined;
  }
  const path = decode(FD_PATH.exec(rest)?.[1] ?? '').toString();
  if (path.startsWith('socket:')) {
    const [, requestId] = /^x-request-id: (\S+)\r$/m.exec(bytes(rest).toString('latin1')) ?? [];
    return requestId === undefined ? undefined : { kind: 'reply', requestId };
  }
  if ((path !== folder && !path.startsWith(`${folder}/`)) || LOCK.test(path)) return undefined;
  if (name === 'fsync' || name === 'fdatasync') return { kind: 'sync', path, failed: returned < 0 };
  if (returned < 0) return undefined;
  const last = Number(/, (\d+) ?\) *$/.exec(rest.slice(Math.max(0, equals - 60), equals))?.[1]);
  if (name === 'ftruncate') return { kind: 'truncate', path, size: last };
  if (name !== 'pwrite64') throw new Error(`database files are written with pwrite64, not ${name}: ${path}`);
  return { kind: 'write', path, offset: last, data: bytes(rest).subarray(0, returned) };
}

/** All texts among the arguments, one behind the other. */
function bytes(args: string): Buffer {
  return Buffer.concat([...args.matchAll(TEXT)].map(([, text = '']) => decode(text)));
}

function decode(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex');
}
