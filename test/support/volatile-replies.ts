/** What the replies of the management door say of their moment, and what stands in its place. */
const MOMENTS: readonly (readonly [RegExp, string | ((found: string) => string)])[] = [
  // health
  [/(?<="total":\d+,"free":)\d+/g, 'N'],
  // Unknown in the first ten seconds.
  [/(?<="details":\{)(?:"p99Ms":\d+,)?(?="thresholdMs")/g, '"p99Ms":N,'],
  // info
  [/(?<="(?:startTime|currentTime|uptime)":")[^"]+/g, 'TIME'],
  [/(?<="(?:used|committed)":)\d+/g, 'N'],
  // metrics
  [/(?<="statistic":"[A-Z_]+","value":)[\d.e-]+/g, 'N'],
  // deliveries; what is named like one
  [/(?<="(?:id|name)":")[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?=")/g, 'ID'],
  [/(?<="receivedAt":")[^"]+/g, 'TIME'],
  // heapdump, cpuprofile
  [/(?<=filename="portico-\d+-)[\dT-]+(?=\.)/g, 'TIME'],
  // history, requests, logtail
  [/^\{"window":"\d+[mh]","interval":.*\}$/g, 'HISTORY'],
  [/(?<=^\{"(?:requests|lines)":\[)\{.*\}(?=\]\}$)/g, ''],
  // eventloop
  [/^\{"window":.*\}$/, (text) => text.replace(/(?<="window":")[^"]+|(?<=":)[\d.]+/g, 'N')],
  // threaddump: the stack ends in the transport.
  [
    /"threadState":"RUNNABLE"(.*?)"inNative":(?:true|false)(.*?)"stackTrace":\[.*?\](?=,"lockedMonitors")/g,
    '$1$2',
  ],
  [/^\S+Z(?=\nThreads of Node)/g, 'TIME'],
  [/(?<=\n {3}State: RUNNABLE)(?:\n\tat .*)+/g, ''],
  // openapi
  [/(?<="url":"http:\/\/[\w.-]+:)\d+/g, 'PORT'],
  // auditevents: recorded later, with ids of their own
  [/(?<=^\{"events":\[)\{.*\}(?=\]\}$)/g, ''],
  // httpexchanges: a request on the same connection may be recorded only after the next one has come.
  [/(?<=^\{"exchanges":\[)\{.*\}(?=\]\}$)/g, ''],
];

/** Replies of the management door to one connection, without what they say of their moment. */
export function withoutMoment(text: string): string {
  return text
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .map(replyWithoutMoment)
    .join('');
}

function replyWithoutMoment(reply: string): string {
  const end = reply.indexOf('\r\n\r\n') + 4;
  const head = lasting(reply.slice(0, end));
  const written = reply.slice(end);
  const body = /\r\nTransfer-Encoding: chunked\r\n/.test(head) ? joined(written) : written;
  const rest = lasting(body.startsWith('# ') ? withoutSamples(body) : body);
  // A reply to HEAD has the length of a body that is not there to look at.
  const hasItsLength = (length: string) => body === '' || (rest !== body && Number(length) === body.length);
  return (
    head.replace(/(?<=\r\ncontent-length: )\d+/, (length) => (hasItsLength(length) ? 'LENGTH' : length)) +
    rest
  );
}

function lasting(text: string): string {
  return MOMENTS.reduce(
    (rest, [moment, instead]) =>
      typeof instead === 'string' ? rest.replace(moment, instead) : rest.replace(moment, instead),
    text,
  );
}

/** The chunks of a chunked body as one text. */
function joined(written: string): string {
  let body = '';
  for (let at = 0; ; ) {
    const lineEnd = written.indexOf('\r\n', at);
    const size = Number.parseInt(written.slice(at, lineEnd), 16);
    if (!(size > 0)) return body + written.slice(at);
    body += written.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}

/** The samples of Prometheus without their values, and without those that only some moments have. */
function withoutSamples(body: string): string {
  return body
    .split('\n')
    .filter((line) => !/^(?:nodejs_gc_duration|http_server_requests)_seconds\w*\{/.test(line))
    .map((line) => (line.startsWith('#') ? line : line.replace(/ \S+$/, ' N')))
    .join('\n');
}
