import fc from 'fast-check';

/** A request as its bytes, head and body apart. */
export interface OddRequest {
  readonly head: string;
  readonly body: Uint8Array;
}

/** A header line, or some; a signature depends on the body. */
export type Line = string | ((body: Uint8Array) => string);

export interface OddRequests {
  readonly methods: readonly string[];
  readonly targets: readonly string[];
  /** Each request has some of them. */
  readonly headers: readonly Line[];
  /** Lines that most requests have. */
  readonly usual: readonly Line[];
  readonly bodies: readonly (string | Uint8Array)[];
}

/** The last request of a connection: the door closes it. */
export const LAST_REQUEST = 'GET /the-end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

/** Lines that change how a connection or a body is read. */
const framingHeaders = [
  'Connection: close',
  'connection: Keep-Alive',
  'Connection: keep-alive, x-webhook-token',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Expect: 100-continue',
  'expect: something-else',
  'Host: y',
  'Host: LOCALHOST.:1',
  'X-Forwarded-Host: y',
  'Accept-Encoding: gzip, br',
  'Content-Encoding: gzip',
  'TE: trailers',
  'Origin: http://evil.example',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Site: same-origin',
  'X-Request-Id: mine',
  'If-None-Match: *',
  'Range: bytes=0-1',
  `X-Many: 1\r\n${'x: 1\r\n'.repeat(98)}X-Last: 1`,
  `X-Long: ${'x'.repeat(17_000)}`,
];

/** Those, and lines that change how a refusal is written. */
const anyHeaders = [
  ...framingHeaders,
  'Accept: application/json, application/problem+json',
  'Accept: application/problem+json;q=0',
  'Prefer: handling=strict',
  'Prefer: x, Handling="strict"; y=1\r\nAccept: Application/Problem+JSON',
];

const firstOf = <T>(items: readonly T[]) => items.slice(0, 1);

/** Mostly the first item, sometimes another one; the others have their turn in a long list too. */
function mostly<T>(items: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...firstOf(items)) },
    { weight: 1 + Math.floor(items.length / 16), arbitrary: fc.constantFrom(...items) },
  );
}

function some<T>(items: readonly T[], maxLength: number): fc.Arbitrary<readonly T[]> {
  return fc.oneof(fc.constant([]), fc.array(fc.constantFrom(...items), { maxLength }));
}

const framings = [
  'length',
  'chunked',
  'none',
  'both',
  'twice',
  'two lengths',
  'zero',
  'plus',
  'zeros',
] as const;

type Framing = (typeof framings)[number];

/** The header lines of a framing, and the body as it is written then. */
function framed(
  body: Uint8Array,
  framing: Framing,
): readonly [lines: readonly string[], written: Uint8Array] {
  const length = `Content-Length: ${body.length}`;
  const chunked = Buffer.concat([
    ...(body.length === 0 ? [] : [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]),
    Buffer.from('0\r\n\r\n'),
  ]);
  switch (framing) {
    case 'length':
      return [[length], body];
    case 'chunked':
      return [['Transfer-Encoding: chunked'], chunked];
    case 'none':
      return [[], new Uint8Array()];
    case 'both':
      return [[length, 'Transfer-Encoding: chunked'], chunked];
    case 'twice':
      return [[length, length], body];
    case 'two lengths':
      return [[length, `content-length: ${body.length + 1}`], body];
    case 'zero':
      return [['Content-Length: 0'], new Uint8Array()];
    case 'plus':
      return [[`Content-Length: +${body.length}`], body];
    case 'zeros':
      return [[`Content-Length: 00${body.length}`], body];
  }
}

interface Parts {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly lines: readonly Line[];
  readonly body: string | Uint8Array;
  readonly framing: Framing;
}

function textOf(line: Line, body: string | Uint8Array): string {
  return typeof line === 'string' ? line : line(Buffer.from(body as string));
}

function request({ method, target, version, lines, body, framing }: Parts): OddRequest {
  const [length, written] = framed(Buffer.from(body as string), framing);
  const all = [...lines.map((line) => textOf(line, body)), ...length].filter((line) => line !== '');
  return {
    head: `${method} ${target} HTTP/${version}\r\n${all.map((line) => `${line}\r\n`).join('')}\r\n`,
    body: written,
  };
}

/** Random requests, the plain ones among them and those that are almost plain. The first of each list is the most usual. */
export function oddRequest(of: OddRequests): fc.Arbitrary<OddRequest> {
  return fc
    .record({
      method: mostly(of.methods),
      target: mostly(of.targets),
      version: mostly(['1.1', '1.1', '1.1', '1.0']),
      host: mostly(['Host: x', 'Host: x', 'hOST: x', '', 'Host: x\r\nHost: x']),
      usual: fc.subarray([...of.usual], { minLength: Math.max(0, of.usual.length - 1) }),
      headers: some(of.headers, 2),
      framingHeaders: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, some(anyHeaders, 2)),
      body: mostly(of.bodies),
      framing: fc.oneof(
        { weight: 4, arbitrary: fc.constant('length' as const) },
        fc.constantFrom(...framings),
      ),
    })
    .map(({ host, usual, headers, framingHeaders, ...parts }) =>
      request({ ...parts, lines: [host, ...usual, ...headers, ...framingHeaders] }),
    );
}

/** The plain request, and every one that differs from it in one thing. A header line comes instead of a usual one of its name, and beside it. */
export function almostPlain(of: OddRequests): readonly OddRequest[] {
  const [method = '', target = '', body = ''] = [of.methods[0], of.targets[0], of.bodies[0]];
  const lines = ['Host: x', ...of.usual];
  const plain: Parts = { method, target, version: '1.1', lines, body, framing: 'length' };
  const nameOf = (line: Line) => textOf(line, body).replace(/:.*/s, '').toLowerCase();
  const changes: Partial<Parts>[] = [
    {},
    { version: '1.0' },
    ...of.methods.map((each) => ({ method: each })),
    ...of.targets.map((each) => ({ target: each })),
    ...of.bodies.map((each) => ({ body: each })),
    ...framings.map((each) => ({ framing: each })),
    ...lines.map((_, i) => ({ lines: lines.toSpliced(i, 1) })),
    ...[...of.headers, ...anyHeaders].flatMap((line) => [
      { lines: [...lines, line] },
      { lines: [line, ...lines] },
      { lines: [...lines.filter((each) => nameOf(each) !== nameOf(line)), line] },
    ]),
  ];
  const requests = changes.map((change) => request({ ...plain, ...change }));
  const bytesOf = ({ head, body }: OddRequest) => head + Buffer.from(body).toString('latin1');
  // Several changes make the same request, such as a header line that comes instead of none.
  return [...new Map(requests.map((each) => [bytesOf(each), each])).values()];
}

/** How the bytes of some requests are written: all at once, request by request, or each head and body in two. */
export type Cut = 'together' | 'each' | 'apart';

/** The pieces of some requests and the last one. */
export function pieces(requests: readonly OddRequest[], cut: Cut): readonly Uint8Array[] {
  const parts = requests.map(({ head, body }) => {
    const half = body.length >> 1;
    return [Buffer.from(head, 'latin1'), body.subarray(0, half), body.subarray(half)];
  });
  const end = Buffer.from(LAST_REQUEST);
  if (cut === 'together') return [Buffer.concat([...parts.flat(), end])];
  const each = cut === 'each' ? parts.map((of) => Buffer.concat(of)) : parts.flat();
  return [...each, end].filter(({ length }) => length > 0);
}
