import assert from 'node:assert/strict';

/** One line with a value. */
export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly unit: string | undefined;
  readonly samples: readonly ParsedSample[];
}

/** What sample names a family may have, by its type, as suffixes. */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  gauge: [''],
  summary: ['_count', '_sum'],
  histogram: ['_bucket', '_count', '_sum'],
};
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/su;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/suy;
const NUMBER = /^(?:NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/**
 * Parses the text format 0.0.4 of Prometheus, or OpenMetrics 1.0.0, as strictly as they are written down.
 * Fails the test at the first line that is not of the format, or not where it belongs.
 */
export function parseExposition(text: string, format: 'text' | 'openmetrics'): readonly ParsedFamily[] {
  if (text === '' && format === 'text') return [];
  assert.ok(text.endsWith('\n'), 'the last line ends');
  const lines = text.slice(0, -1).split('\n');
  if (format === 'openmetrics') assert.equal(lines.pop(), '# EOF');
  const families: ParsedFamily[] = [];
  const seen = new Set<string>();
  let comments = new Map<string, string>();
  let samples: ParsedSample[] = [];
  let current: string | undefined;

  const finish = () => {
    if (current === undefined) return;
    const [name, type] = [current, comments.get('TYPE') ?? assert.fail(`${current} has no TYPE`)];
    assert.ok(!families.some((family) => family.name === name), `${name} comes once`);
    assert.ok(samples.length > 0, `${name} has samples`);
    const unit = comments.get('UNIT');
    if (unit !== undefined) assert.ok(name.endsWith(`_${unit}`), `${name} ends with its unit ${unit}`);
    if (type === 'histogram') checkBuckets(name, samples);
    families.push({ name, type, help: comments.get('HELP') ?? '', unit, samples });
    comments = new Map();
    samples = [];
    current = undefined;
  };

  for (const line of lines) {
    const comment = /^# (HELP|TYPE|UNIT) ([a-zA-Z_:][\w:]*) (.*)$/su.exec(line);
    if (comment !== null) {
      const [, keyword = '', name = '', rest = ''] = comment;
      if (name !== current || samples.length > 0) finish();
      current = name;
      assert.ok(!comments.has(keyword), `one ${keyword} for ${name}`);
      assert.ok(keyword !== 'UNIT' || format === 'openmetrics', 'units are of OpenMetrics');
      comments.set(keyword, keyword === 'HELP' ? unescapeHelp(rest, format) : rest);
      continue;
    }
    const sample = parseSample(line);
    assert.ok(current !== undefined, `a family for ${line}`);
    const type = comments.get('TYPE') ?? '';
    const suffixes = type === 'counter' ? [format === 'text' ? '' : '_total'] : SUFFIXES[type];
    assert.ok(
      suffixes?.some((suffix) => sample.name === current + suffix),
      `${type} ${current}: ${line}`,
    );
    if (type === 'counter') assert.match(sample.name, /_total$/);
    const id = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
    assert.ok(!seen.has(id), `${line} comes once`);
    seen.add(id);
    samples.push(sample);
  }
  finish();
  return families;
}

function parseSample(line: string): ParsedSample {
  const [, name = '', labelText = '', number = ''] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
  assert.match(number, NUMBER, line);
  const labels: Record<string, string> = Object.create(null);
  LABEL.lastIndex = 0;
  for (let at = 0; at < labelText.length; at = LABEL.lastIndex) {
    LABEL.lastIndex = at;
    const [, key = '', value = '', comma] = LABEL.exec(labelText) ?? assert.fail(`no label: ${line}`);
    assert.ok(!(key in labels), `${key} comes once: ${line}`);
    assert.ok(comma === ',' || LABEL.lastIndex === labelText.length, line);
    assert.ok(!value.includes('\0'), 'Prometheus ends at a NUL');
    labels[key] = value.replace(/\\(.)/gs, (_whole, c: string) => (c === 'n' ? '\n' : c));
  }
  return { name, labels: { ...labels }, value: Number(number.replace('Inf', 'Infinity')) };
}

function unescapeHelp(text: string, format: 'text' | 'openmetrics'): string {
  const escaped = format === 'text' ? /\\([\\n])/g : /\\([\\n"])/g;
  const bare = text.replace(escaped, '');
  assert.ok(!bare.includes('\\') && (format === 'text' || !bare.includes('"')), `escapes of ${text}`);
  return text.replace(escaped, (_whole, c: string) => (c === 'n' ? '\n' : c));
}

/** Buckets ascend, nothing is lost between them, and the last one holds everything. */
function checkBuckets(name: string, samples: readonly ParsedSample[]): void {
  let before: ParsedSample | undefined;
  for (const sample of samples) {
    if (sample.name === `${name}_bucket`) {
      if (before !== undefined) {
        assert.ok(bound(sample) > bound(before), `${name}: buckets ascend`);
        assert.ok(sample.value >= before.value, `${name}: buckets are cumulative`);
      }
      before = sample;
    } else if (sample.name === `${name}_count`) {
      assert.equal(bound(before), Infinity, `${name}: the last bucket is +Inf`);
      assert.equal(sample.value, before?.value, `${name}: the last bucket holds everything`);
      before = undefined;
    }
  }
}

function bound(sample: ParsedSample | undefined): number {
  return Number((sample?.labels.le ?? '').replace('Inf', 'Infinity'));
}
