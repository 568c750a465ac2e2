import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Format, formatFor, OPEN_METRICS, TEXT } from './format.ts';

const cases: readonly (readonly [who: string, accept: string | undefined, expected: Format])[] = [
  ['nobody', undefined, TEXT],
  ['an empty header', '', TEXT],
  ['curl', '*/*', TEXT],
  ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', TEXT],
  [
    'Prometheus 2.42',
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    OPEN_METRICS,
  ],
  [
    'Prometheus 3',
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    OPEN_METRICS,
  ],
  [
    'Prometheus with native histograms',
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1',
    OPEN_METRICS,
  ],
  ['Prometheus 1', 'text/plain;version=0.0.4;q=1,*/*;q=0.1', TEXT],
  ['only an OpenMetrics that is not ours', 'application/openmetrics-text;version=0.0.1,*/*;q=0.1', TEXT],
  ['no version', 'application/openmetrics-text', OPEN_METRICS],
  ['a quoted version', 'Application/OpenMetrics-Text; Version="1.0.0"', OPEN_METRICS],
  ['the older one by its weight', 'application/openmetrics-text;q=0.4,text/plain;q=0.6', TEXT],
  ['a name before a star', '*/*, application/openmetrics-text;version=1.0.0', OPEN_METRICS],
  ['one that is refused', 'application/openmetrics-text;version=1.0.0;q=0, */*', TEXT],
  ['the older one refused', 'text/plain;q=0, */*', OPEN_METRICS],
  ['none of ours', 'application/json', TEXT],
  ['a weight that is none', 'application/openmetrics-text;q=9', TEXT],
];

for (const [who, accept, expected] of cases) {
  test(`${who} gets ${expected.mediaType}`, () => assert.equal(formatFor(accept), expected));
}
