import { type Member, parameterOf, parseMembers } from '../../http/weighted-list.ts';
import type { Family } from './family.ts';
import { helpText } from './text.ts';

/** One of the two text formats that Prometheus reads. */
export interface Format {
  readonly mediaType: string;
  readonly version: string;
  /** Prometheus 3 refuses a scrape without a content type that it knows. */
  readonly contentType: string;
  /** The lines before the samples of a family. */
  head(family: Family): string;
  /** The last line. */
  readonly end: string;
}

/** The older format, which every scraper reads. */
export const TEXT: Format = {
  mediaType: 'text/plain',
  version: '0.0.4',
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  head({ textName, type, meter }) {
    return `# HELP ${textName} ${helpText(meter.description, false)}\n# TYPE ${textName} ${type}\n`;
  },
  end: '',
};

/** Its successor, with units. */
export const OPEN_METRICS: Format = {
  mediaType: 'application/openmetrics-text',
  version: '1.0.0',
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  head({ name, type, unit, meter }) {
    const unitLine = unit === undefined ? '' : `# UNIT ${name} ${unit}\n`;
    return `# TYPE ${name} ${type}\n${unitLine}# HELP ${name} ${helpText(meter.description, true)}\n`;
  },
  end: '# EOF\n',
};

const FORMATS = [TEXT, OPEN_METRICS];

interface Range {
  readonly formats: readonly Format[];
  readonly quality: number;
  readonly named: boolean;
}

/**
 * The format for an Accept header: the one with the highest quality, among equals one that is named rather than covered
 * by `*`, then the first. Unlike elsewhere the version is a part of the name: a scraper lists those that it reads.
 * A header that accepts neither gets the older format.
 */
export function formatFor(accept: string | undefined): Format {
  const ranges = parseMembers(accept ?? '').map(rangeOf);
  const refused = new Set(
    ranges.flatMap(({ quality, formats, named }) => (quality === 0 && named ? formats : [])),
  );
  const wanted = ranges
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality || Number(b.named) - Number(a.named));
  for (const { formats } of wanted) {
    const found = formats.find((format) => !refused.has(format));
    if (found !== undefined) return found;
  }
  return TEXT;
}

function rangeOf(member: Member): Range {
  const version = parameterOf(member, 'version');
  return {
    formats: FORMATS.filter(
      (format) => covers(member.name, format.mediaType) && (version ?? format.version) === format.version,
    ),
    quality: member.weight,
    named: !member.name.includes('*'),
  };
}

function covers(range: string, mediaType: string): boolean {
  return range === mediaType || range === '*/*' || range === mediaType.replace(/\/.*/, '/*');
}
