import type { AttemptEntry } from '../inbox/inbox.ts';
import type {
  SentEvent,
  StoredEndpoint,
  StoredEvent,
  StoredEventType,
  StoredTenant,
  TenantEvent,
} from './store.ts';

// The JSON of the API of sending.

export const iso = (ms: number) => new Date(ms).toISOString();
export const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms));

export function endpointJson({
  id,
  tenant,
  settings,
  disabled,
  disabledAt,
  failingSince,
  createdAt,
  updatedAt,
}: StoredEndpoint) {
  return {
    id,
    tenant,
    ...settings,
    enabled: disabled === null,
    disabledBecause: disabled,
    disabledAt: isoOrNull(disabledAt),
    failingSince: isoOrNull(failingSince),
    createdAt: iso(createdAt),
    updatedAt: iso(updatedAt),
  };
}

export function tenantJson({ name, description, createdAt }: StoredTenant) {
  return { name, description, createdAt: iso(createdAt) };
}

export function eventTypeJson({ name, description, schema, example, createdAt, updatedAt }: StoredEventType) {
  return { name, description, schema, example, createdAt: iso(createdAt), updatedAt: iso(updatedAt) };
}

export function eventJson({ id, type, receivedAt }: TenantEvent) {
  return { id, type, publishedAt: iso(receivedAt) };
}

export function sentJson({
  event,
  type,
  status,
  attempts,
  receivedAt,
  nextAttemptAt,
  finishedAt,
  error,
}: SentEvent) {
  return {
    event,
    type,
    status,
    attempts,
    publishedAt: iso(receivedAt),
    nextAttemptAt: isoOrNull(nextAttemptAt),
    finishedAt: isoOrNull(finishedAt),
    error,
  };
}

export function attemptJson({ attempt, outcome, startedAt, duration, answer, error }: AttemptEntry) {
  return {
    attempt,
    outcome,
    startedAt: iso(startedAt),
    durationMs: duration,
    status: answer === null || answer.status === 0 ? null : answer.status,
    answer: answer?.body ?? null,
    error,
  };
}

export function bodyOf({ body }: StoredEvent): {
  readonly channels?: readonly string[];
  readonly data?: unknown;
  /** Of a test event. */
  readonly test?: boolean;
} {
  return JSON.parse(Buffer.from(body).toString());
}
