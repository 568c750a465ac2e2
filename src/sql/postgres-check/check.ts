import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { hideSecrets } from '../../core/redaction.ts';
import { serverUrls } from '../database.ts';
import { Connection, describeFault, sqlState } from '../postgres-pool/connection.ts';
import { openFailure } from '../postgres-pool/connector.ts';
import { Bench, type Check, NotSeenError, plainQuery } from './bench.ts';
import { INBOX_CHECKS } from './inbox-checks.ts';
import { SERVER_CHECKS } from './server-checks.ts';
import { SESSION_CHECKS } from './session-checks.ts';
import { STORE_CHECKS } from './store-checks.ts';

/** The result of one check. */
export interface Finding {
  /** The name of the check: one word. */
  readonly check: string;
  readonly promise: string;
  readonly verdict: 'holds' | 'fails' | 'unknown';
  readonly seen: string;
  /** What it means that the promise does not hold, and what to do; null if it holds. */
  readonly meaning: string | null;
}

/** Options of a check of a server. */
interface CheckOptions {
  /** Ends the check early; the scratch schema is removed then too. */
  readonly signal: AbortSignal;
  /** Timeout of most checks, in milliseconds. */
  readonly timeout?: number;
}

const CHECKS: readonly Check[] = [...SERVER_CHECKS, ...SESSION_CHECKS, ...STORE_CHECKS, ...INBOX_CHECKS];

/** In milliseconds. */
const TIMEOUT = 30_000;
/** How long the removal of the scratch schema is tried, in milliseconds. */
const REMOVAL = { timeout: 30_000, pause: 250 };

/**
 * Tries promise by promise whether Portico keeps its word on the server of a URL, in a scratch schema that it removes.
 * Yields what it finds; the removal comes last. Fails with DatabaseOpenError if no server answers.
 */
export async function* checkPostgres(
  url: string,
  options: CheckOptions,
): AsyncGenerator<Finding, void, undefined> {
  const { signal } = options;
  const secrets = secretsOf(url);
  const shown = (finding: Finding): Finding => ({
    ...finding,
    seen: hideSecrets(finding.seen, secrets),
    meaning: finding.meaning && hideSecrets(finding.meaning, secrets),
  });
  const server = await serverOf(url);
  const schema = `portico_check_${randomBytes(6).toString('hex')}`;
  const held = new Set<string>();
  let mayBeThere = false;
  let isLost = false;
  try {
    for (const check of CHECKS) {
      if (signal.aborted) break;
      const missing = (check.needs ?? []).filter((name) => !held.has(name));
      const { name, promise } = check;
      const unknown = (seen: string) =>
        ({ check: name, promise, verdict: 'unknown', seen, meaning: null }) as const;
      let finding: Finding;
      if (isLost) finding = unknown('not tried: the server does not answer any more');
      else if (missing.length > 0) finding = unknown(`not tried: it needs ${missing.join(', ')}`);
      else {
        mayBeThere ||= name === 'schema';
        const timeout = check.timeout ?? options.timeout ?? TIMEOUT;
        finding = await tried(check, new Bench(server, schema, timeout), signal, timeout);
        isLost = finding.verdict === 'fails' && !signal.aborted && !(await answers(server));
      }
      if (finding.verdict === 'holds') held.add(name);
      if (!signal.aborted) yield shown(finding);
    }
  } finally {
    if (mayBeThere) {
      const removal = isLost
        ? notRemoved(schema, 'the server does not answer')
        : await remove(server, schema);
      // Nothing was there to remove if it could not be made.
      if (held.has('schema') || removal.verdict !== 'holds') yield shown(removal);
    }
  }
}

/** Runs a check for as long as it may take. */
async function tried(check: Check, bench: Bench, signal: AbortSignal, timeout: number): Promise<Finding> {
  const { name, promise, meaning } = check;
  const ended = AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
  const tooLate = Promise.withResolvers<never>();
  const onEnd = () => tooLate.reject(new NotSeenError(`no result within ${timeout / 1_000} s`));
  ended.addEventListener('abort', onEnd);
  const result = check.run(bench);
  result.catch(() => {});
  try {
    const seen = await Promise.race([result, tooLate.promise]);
    return { check: name, promise, verdict: 'holds', seen, meaning: null };
  } catch (error) {
    const verdict = error instanceof NotSeenError ? error.verdict : 'fails';
    const own = error instanceof NotSeenError ? error.meaning : undefined;
    return { check: name, promise, verdict, seen: describe(error), meaning: own ?? meaning };
  } finally {
    ended.removeEventListener('abort', onEnd);
    await Promise.race([
      bench[Symbol.asyncDispose]().catch(() => {}),
      delay(timeout, undefined, { ref: false }),
    ]);
  }
}

/** An error with its SQLSTATE, or with that of its cause. */
function describe(error: unknown): string {
  const state = sqlState(error) ?? sqlState((error as { readonly cause?: unknown } | undefined)?.cause);
  return state === undefined ? describeFault(error) : `${describeFault(error)} (SQLSTATE ${state})`;
}

async function answers(url: string): Promise<boolean> {
  try {
    await plainQuery(url, 'SELECT 1');
    return true;
  } catch {
    return false;
  }
}

/** The URL of the server that Portico would use: the first that takes writes, or else the first that answers. */
async function serverOf(url: string): Promise<string> {
  const found: string[] = [];
  let failure: unknown;
  for (const each of serverUrls(url)) {
    try {
      const { replica } = await plainQuery(each, 'SELECT pg_is_in_recovery() AS replica');
      if (replica !== true) return each;
      found.push(each);
    } catch (error) {
      failure ??= error;
      // A server that answers with an error is one to check.
      if (sqlState(error) === '42883' || sqlState(error) === '42501') found.push(each);
    }
  }
  const [first] = found;
  if (first === undefined) throw openFailure(failure);
  return first;
}

const REMOVED = 'The scratch schema is removed at the end';

/** Removes the scratch schema. Sessions that the checks have left may hold locks for a while. */
async function remove(url: string, schema: string): Promise<Finding> {
  let failure: unknown;
  for (const deadline = performance.now() + REMOVAL.timeout; performance.now() < deadline; ) {
    try {
      await using connection = await Connection.open(url);
      await connection.run({ text: 'SET statement_timeout = 0; SET client_min_messages = error' }, undefined);
      await connection.run({ text: `DROP SCHEMA IF EXISTS ${schema} CASCADE` }, undefined);
      return {
        check: 'removal',
        promise: REMOVED,
        verdict: 'holds',
        seen: `removed ${schema}`,
        meaning: null,
      };
    } catch (error) {
      failure = error;
    }
    await delay(REMOVAL.pause);
  }
  return notRemoved(schema, describe(failure));
}

function notRemoved(schema: string, why: string): Finding {
  const meaning = `The schema ${schema} is left in the database. Remove it: DROP SCHEMA ${schema} CASCADE`;
  return { check: 'removal', promise: REMOVED, verdict: 'fails', seen: why, meaning };
}

/** The parts of a URL that may be a password. */
function secretsOf(url: string): readonly string[] {
  const [, given = ''] = /^[a-z]+:\/\/[^:@/?#]*:([^/?#]*)@/.exec(url) ?? [];
  const [, named = ''] = /[?&](?:password|sslpassword)=([^&#]*)/.exec(url) ?? [];
  return [given, named].flatMap((text) => [text, decoded(text)]).filter((text) => text.length > 2);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
