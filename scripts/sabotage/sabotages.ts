/** One change that makes the program wrong, and the test that has to find it. */
export interface Sabotage {
  /** What is promised, as TESTING.md says it. */
  readonly promise: string;
  /** What the change does. */
  readonly change: string;
  /** Below `src/`; `from` stands in it once. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly test: string;
}

/** The sabotages of the promises that matter most. */
export const SABOTAGES: readonly Sabotage[] = [
  {
    promise: 'What was acknowledged survives a power cut',
    change: 'commits are no longer synced',
    file: 'database/sqlite/connection.ts',
    from: 'PRAGMA synchronous=FULL',
    to: 'PRAGMA synchronous=NORMAL',
    test: 'test/proof/sync-before-reply.test.ts',
  },
  {
    promise: 'Nothing is acknowledged into a file that was deleted',
    change: 'the file is not compared with the one that is open',
    file: 'database/sqlite/opened-files.ts',
    from: 'if (found !== undefined && found.ino === opened.ino && found.dev === opened.dev) continue;',
    to: 'if (found !== null) continue;',
    test: 'test/faults/lost-file.test.ts',
  },
  {
    promise: 'A write that fails takes no other one of its batch with it',
    change: 'a failed write rolls the batch back',
    file: 'database/sqlite/writer/batch.ts',
    from: 'this.#together(writes) ?? this.#oneByOne(writes)',
    to: 'writes.map((steps) => ({ rows: this.#run(steps) }))',
    test: 'src/database/sqlite/writer/batch.test.ts',
  },
  {
    promise: 'A process does not claim what it is running',
    change: 'claims do not leave out what the owner has',
    file: 'database/sqlite/writer/write-statements.ts',
    from: 'AND (owner IS NULL OR seq NOT IN (SELECT value FROM json_each(?6)))',
    to: 'AND (owner IS NULL OR ?6 IS NOT NULL)',
    test: 'test/database/inbox-leases.test.ts',
  },
  {
    promise: 'Deliveries of one order key are handled one after the other',
    change: 'new jobs of a key do not wait for its head',
    file: 'database/sqlite/writer/write-statements.ts',
    from: 'const WAITS = `(value ->> 1) IS NOT NULL AND EXISTS (',
    to: 'const WAITS = `(value ->> 1) IS NULL AND EXISTS (',
    test: 'test/database/inbox-order.test.ts',
  },
  {
    promise: 'A lost lease is told to the handler',
    change: 'its signal is not aborted',
    file: 'inbox/dispatch/leases.ts',
    from: 'if (attempt.loseLease()) this.#options.events.leaseLost(attempt.job);',
    to: 'this.#options.events.leaseLost(attempt.job);',
    test: 'test/database/inbox-leases.test.ts',
  },
  {
    promise: 'Only what the sender has signed is stored',
    change: 'any signature matches',
    file: 'webhook/schemes/hmac-keys.ts',
    from: 'if (timingSafeEqual(expected, signature)) matches = true;',
    to: 'if (expected.length === signature.length) matches = true;',
    test: 'src/webhook/schemes/hmac.test.ts',
  },
  {
    promise: 'A wrong secret is refused',
    change: 'any secret matches',
    file: 'http/auth/secret-equal.ts',
    from: 'if (timingSafeEqual(known, digest)) matches = true;',
    to: 'if (known.length === digest.length) matches = true;',
    test: 'src/http/auth/secret-equal.test.ts',
  },
  {
    promise: 'Forward addresses in private networks get nothing unless that is meant',
    change: 'addresses that a name resolves to are not judged',
    file: 'webhook/forward/guarded-lookup.ts',
    from: '!allowPrivate && found.some',
    to: 'false && found.some',
    test: 'test/webhook/forward.test.ts',
  },
  {
    promise: 'A request with two Host headers is refused',
    change: 'only none is refused',
    file: 'http/server/request-guard.ts',
    from: 'if (hosts > 1)',
    to: 'if (hosts > 9)',
    test: 'src/http/server/request-guard.test.ts',
  },
  {
    promise: 'The fast path takes plain requests only',
    change: 'it takes requests with Transfer-Encoding too',
    file: 'http/fast-path/plain-request.ts',
    from: "headers['transfer-encoding'] === undefined &&",
    to: '',
    test: 'src/http/fast-path/plain-request.test.ts',
  },
  {
    promise: 'No key `__proto__` gets in',
    change: 'it is let through',
    file: 'http/body/json-body.ts',
    from: "if (text.includes('\\\\') || text.includes('__proto__')) refuseProto(value);",
    to: '',
    test: 'src/http/body/json-body.test.ts',
  },
  {
    promise: 'A page of another site cannot write',
    change: 'Sec-Fetch-Site is not looked at',
    file: 'http/cross-site.ts',
    from: "if (headers['sec-fetch-site'] !== 'cross-site') return;",
    to: 'if (method !== undefined) return;',
    test: 'src/management/operations.test.ts',
  },
  {
    promise: 'A client that is refused for its certificate is an audit event',
    change: 'one whose certificate is not trusted is none',
    file: 'http/tls/refused-certificate.ts',
    from: 'return authorizationError == null ? undefined : String(authorizationError);',
    to: 'return authorizationError === code ? code : undefined;',
    test: 'test/access/certificates.test.ts',
  },
  {
    promise: 'Each request that is recorded has a span, whenever its client leaves',
    change: 'only a reply that is complete ends it',
    file: 'http/server/trace-requests.ts',
    from: "raw.on('finish', end).on('close', end);",
    to: "raw.on('finish', end);",
    test: 'test/telemetry/spans.test.ts',
  },
  {
    promise: 'A result of GraphQL has limits',
    change: 'its bytes have none',
    file: 'graphql/execution/result-budget.ts',
    from: 'if (this.bytes > maxResultBytes || this.#held > maxResultBytes) {',
    to: 'if (maxResultBytes < 0) {',
    test: 'test/graphql/execution/lists.test.ts',
  },
  {
    promise: 'Long results that wait hold bounded memory, however many there are',
    change: 'a result that begins while there is too much text makes a whole slice first',
    file: 'graphql/execution/result-budget.ts',
    from: 'this.#turns.isFull ? now : now + this.#turns.slice',
    to: 'now + this.#turns.slice',
    test: 'test/graphql/slow-readers.test.ts',
  },
  {
    promise: 'A cursor that was changed is refused',
    change: 'its signature is not compared',
    file: 'users/lists/cursor.ts',
    from: 'timingSafeEqual(bytes.subarray(0, SIGNATURE), sign(key, selection, payload))',
    to: 'sign(key, selection, payload).length > 0',
    test: 'test/rest/lists.test.ts',
  },
  {
    promise: 'An Idempotency-Key with another body is refused',
    change: 'the body is not compared',
    file: 'database/sqlite/user-store.ts',
    from: "if (before !== fingerprint) return { is: 'reused' };",
    to: '',
    test: 'test/rest/idempotency.test.ts',
  },
  {
    promise: 'Secrets are masked',
    change: 'names like those of secrets are shown',
    file: 'management/access/masking.ts',
    from: 'if (SECRET_PARTS.test(words.join',
    to: 'if (false && SECRET_PARTS.test(words.join',
    test: 'test/management/secrets.test.ts',
  },
  {
    promise: 'A backup is checked before it counts',
    change: 'what integrity_check finds is ignored',
    file: 'database/backup/copy-file.ts',
    from: "if (found.length !== 1 || found[0]?.integrity_check !== 'ok') {",
    to: 'if (found.length === 0) {',
    test: 'test/database/backup.test.ts',
  },
];
