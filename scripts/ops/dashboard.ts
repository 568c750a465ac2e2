import type { ListedMeter } from './meters.ts';
import { chosen, type Panel, panelsOf, panelsOfAll, quantileOf, rateOf } from './panels.ts';

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
  /** Whether the row starts closed; a closed row's panels query nothing. */
  readonly collapsed?: boolean;
}

const WIDTH = 24;
const PANELS_PER_LINE = 3;
const HEIGHT = 7;
const DATASOURCE = { type: 'prometheus', uid: '$' + '{datasource}' };
/** Shown as a marker in all panels instead. */
const START_TIME = 'process.start.time';
const REQUESTS = 'http.server.requests';
/** The rows after the doors, by the beginning of their meters' names; the first match counts. */
const ROWS: readonly (readonly [beginning: RegExp, title: string])[] = [
  [/^graphql\./, 'GraphQL door'],
  [/^webhook\.(?:acknowledgements|deliveries|refused)/, 'Webhook door'],
  [/^(?:health|meters)\./, 'Management door'],
  [/^webhook\./, 'Inbox'],
  [/^(?:database|disk)\./, 'Database'],
  [/^(?:process|nodejs)\./, 'Process'],
];
const DOORS = {
  'GraphQL door': 'graphql',
  'REST door': 'rest',
  'Webhook door': 'webhook',
  'Management door': 'management',
};
const JVM = 'For Spring Boot Admin';

/** Grafana's dashboard of all meters, as the text of its file. */
export function dashboard(meters: readonly ListedMeter[]): string {
  const requests = meters.find(({ name }) => name === REQUESTS);
  if (requests === undefined) throw new Error(`there is no meter ${REQUESTS}`);
  const others = meters.filter((meter) => meter !== requests);
  const inRow = (title: string) =>
    panelsOfAll(others.filter((meter) => rowOf(meter) === title && meter.name !== START_TIME));
  const rows: readonly Row[] = [
    { title: 'At a glance', panels: overview() },
    ...Object.entries(DOORS).map(([title, door]) => ({
      title,
      panels: [...panelsOf(requests, { more: [`door="${door}"`], title: door }), ...inRow(title)],
    })),
    ...['Inbox', 'Database', 'Process', 'Other'].map((title) => ({ title, panels: inRow(title) })),
    { title: JVM, panels: inRow(JVM), collapsed: true },
  ];
  const content = {
    uid: 'portico',
    title: 'Portico',
    tags: ['portico'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: { list: variables() },
    annotations: { list: [restarts()] },
    panels: placed(rows.filter(({ panels }) => panels.length > 0)),
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function rowOf({ name, needs }: ListedMeter): string {
  if (needs === '`SPRING_BOOT_ADMIN_URL`') return JVM;
  return ROWS.find(([beginning]) => beginning.test(name))?.[1] ?? 'Other';
}

/** The most important panels. */
function overview(): readonly Panel[] {
  const count = 'http_server_requests_seconds_count';
  const one = (title: string, unit: string, expr: string, description: string): Panel => ({
    title,
    description,
    unit,
    queries: [{ expr, legend: title }],
  });
  return [
    one('Requests', 'reqps', rateOf(count, []), 'Requests per second of all doors'),
    one(
      'Failed requests',
      'percentunit',
      `(${rateOf(count, [], ['status=~"5.."'])} or vector(0)) / ${rateOf(count, [])}`,
      'Share of replies with a status from 500',
    ),
    one(
      'Commit p99',
      's',
      quantileOf(0.99, 'database_commits_seconds_bucket'),
      'What a write waits for the database',
    ),
    one(
      'Backlog',
      'short',
      `max(${chosen('webhook_backlog')})`,
      'Open jobs; all instances of a database have the same',
    ),
    one(
      'Oldest open delivery',
      's',
      `max(${chosen('webhook_backlog_age_seconds')})`,
      'How long it has waited',
    ),
    one('Dead jobs', 'short', `max(${chosen('webhook_dead')})`, 'Jobs that used all their attempts'),
  ];
}

function variables(): readonly object[] {
  const ours = 'http_server_requests_seconds_count{door!=""';
  const query = (name: string, text: string) => ({
    name,
    type: 'query',
    datasource: DATASOURCE,
    query: { query: text, refId: name },
    definition: text,
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  });
  return [
    { name: 'datasource', type: 'datasource', query: 'prometheus' },
    query('job', `label_values(${ours}}, job)`),
    query('instance', `label_values(${ours},job=~"$job"}, instance)`),
  ];
}

function restarts(): object {
  return {
    name: 'Starts',
    datasource: DATASOURCE,
    enable: true,
    iconColor: 'orange',
    expr: `changes(${chosen('process_start_time_seconds')}[1m]) > 0`,
    titleFormat: 'Start of {{instance}}',
  };
}

/** Positions Grafana's panels, row by row. */
function placed(rows: readonly Row[]): readonly object[] {
  const all: object[] = [];
  let id = 0;
  let y = 0;
  for (const { title, panels, collapsed = false } of rows) {
    const row = { id: ++id, type: 'row', title, collapsed, gridPos: { x: 0, y: y++, w: WIDTH, h: 1 } };
    const isStat = title === 'At a glance';
    const perLine = isStat ? panels.length : PANELS_PER_LINE;
    const height = isStat ? 4 : HEIGHT;
    const w = WIDTH / perLine;
    const inside = panels.map((panel, i) =>
      drawn(panel, ++id, isStat ? 'stat' : 'timeseries', {
        x: (i % perLine) * w,
        y: y + Math.floor(i / perLine) * height,
        w,
        h: height,
      }),
    );
    if (!collapsed) y += Math.ceil(panels.length / perLine) * height;
    all.push({ ...row, panels: collapsed ? inside : [] }, ...(collapsed ? [] : inside));
  }
  return all;
}

function drawn(
  { title, description, unit, queries }: Panel,
  id: number,
  type: string,
  gridPos: object,
): object {
  return {
    id,
    type,
    title,
    description,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit }, overrides: [] },
    targets: queries.map(({ expr, legend }, i) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + i),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}
