/** Values minute by minute, in promtool's notation, by series. */
type Series = Readonly<Record<string, string>>;

/** What has an alert fire, and what does not though it comes close. */
export interface AlertCase {
  readonly fires: Series;
  readonly quiet: Series;
}

const one = (series: string, fires: string, quiet: string): AlertCase => ({
  fires: { [series]: fires },
  quiet: { [series]: quiet },
});

/** A histogram whose values are all between two bounds. */
function histogram(name: string, labels: string, low: number, high: number): Series {
  const series = (le: string, values: string) => [
    `${name}_bucket{job="portico",${labels}le="${le}"}`,
    values,
  ];
  return Object.fromEntries([
    series(String(low), '0x120'),
    series(String(high), '0+100x120'),
    series('+Inf', '0+100x120'),
  ]);
}
const slow = (name: string, labels = ''): AlertCase => ({
  fires: histogram(name, labels, 1, 5),
  quiet: histogram(name, labels, 0.005, 0.025),
});
/** Two series of which the first one is a share of both. */
function share(part: string, rest: string, fires: number, quiet: number): AlertCase {
  const both = (of: number) => ({ [part]: `0+${of}x120`, [rest]: `0+${1_000 - of}x120` });
  return { fires: both(fires), quiet: both(quiet) };
}

/** A case for each alert. All are looked at after an hour. */
export const CASES: Readonly<Record<string, AlertCase>> = {
  PorticoDown: one('up{job="portico",instance="a"}', '1x30 0x90', '1x120'),
  PorticoRestarts: one('process_start_time_seconds{job="portico"}', '0x50 1 2 3x60', '0x50 1 2 2x60'),
  PorticoEventLoopBlocked: one('nodejs_eventloop_lag_p99_seconds{job="portico"}', '0.6x120', '0.02x120'),
  PorticoHeapNearlyFull: {
    fires: {
      'nodejs_heap_size_used_bytes{job="portico"}': '95x120',
      'nodejs_heap_size_limit_bytes{job="portico"}': '100x120',
    },
    quiet: {
      'nodejs_heap_size_used_bytes{job="portico"}': '85x120',
      'nodejs_heap_size_limit_bytes{job="portico"}': '100x120',
    },
  },
  PorticoFewDescriptorsLeft: {
    fires: { 'process_open_fds{job="portico"}': '900x120', 'process_max_fds{job="portico"}': '1024x120' },
    quiet: { 'process_open_fds{job="portico"}': '700x120', 'process_max_fds{job="portico"}': '1024x120' },
  },
  PorticoSeriesOverflow: one('meters_overflow_total{job="portico",meter="m"}', '_x50 1x70', '_x120'),
  PorticoFailedRequests: share(
    'http_server_requests_seconds_count{job="portico",door="rest",status="503"}',
    'http_server_requests_seconds_count{job="portico",door="rest",status="200"}',
    20,
    5,
  ),
  PorticoFailedOperations: share(
    'graphql_operations_seconds_count{job="portico",name="Users",type="query",outcome="error"}',
    'graphql_operations_seconds_count{job="portico",name="Users",type="query",outcome="success"}',
    100,
    10,
  ),
  PorticoSlowRequests: slow('http_server_requests_seconds', 'door="rest",'),
  PorticoRefusedSenders: one(
    'webhook_refused_total{job="portico",source="github",reason="signature"}',
    '0+1x120',
    '0x50 1x70',
  ),
  PorticoSlowAcknowledgements: slow('webhook_acknowledgements_seconds'),
  PorticoDeliveriesWait: one('webhook_backlog_age_seconds{job="portico"}', '0+60x120', '300x120'),
  PorticoBacklogGrows: one('webhook_backlog{job="portico"}', '0+100x120', '9000-50x120'),
  PorticoAttemptsFail: share(
    'webhook_attempts_total{job="portico",outcome="retry"}',
    'webhook_attempts_total{job="portico",outcome="done"}',
    600,
    400,
  ),
  PorticoHandlersEndProcesses: one(
    'webhook_attempts_total{job="portico",outcome="crashed"}',
    '0x40 1 2 3 4x70',
    '0x40 1x80',
  ),
  PorticoDeadDeliveries: one('webhook_dead{job="portico"}', '0x30 1x90', '0x120'),
  PorticoUnhandledDeliveries: one('webhook_unhandled_total{job="portico"}', '0x30 1x90', '5x120'),
  PorticoWritesFail: share(
    'database_writes_total{job="portico",outcome="failed"}',
    'database_writes_total{job="portico",outcome="stored"}',
    100,
    20,
  ),
  PorticoWritesWait: one('database_write_age_seconds{job="portico"}', '0x30 3x90', '0.9x120'),
  PorticoSlowCommits: slow('database_commits_seconds'),
  PorticoDiskNearlyFull: {
    fires: { 'disk_free_bytes{job="portico"}': '500-1x120', 'disk_total_bytes{job="portico"}': '1000x120' },
    quiet: { 'disk_free_bytes{job="portico"}': '500x120', 'disk_total_bytes{job="portico"}': '1000x120' },
  },
  PorticoWalGrows: one('database_wal_size_bytes{job="portico"}', '0+2000000x120', '8000000x120'),
  PorticoClocksDiffer: one('webhook_clock_skew_seconds{job="portico"}', '-6x120', '-1x120'),
  PorticoBackupTooOld: one('database_backup_age_seconds{job="portico"}', '172801x120', '172000x120'),
  PorticoBackupFails: {
    fires: { 'database_backups_seconds_count{job="portico",outcome="failed"}': '0x30 1x90' },
    quiet: {
      'database_backups_seconds_count{job="portico",outcome="failed"}': '0x30 1x90',
      'database_backups_seconds_count{job="portico",outcome="completed"}': '0x40 1x80',
    },
  },
};
