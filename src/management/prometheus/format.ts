import { preferred } from '../../http/accept.ts';
import { parameterOf, type Weighted } from '../../http/weighted-list.ts';
import type { Family } from './family.ts';
import { helpText } from './text.ts';

/** One of the two text formats that Prometheus reads. */
export interface Format {
  readonly mediaType: string;
  readonly version: string;
  /** The lines before the samples of a family. */
  head(family: Family): string;
  /** The last line. */
  readonly end: string;
}

/** The older format, which every scraper reads. */
export const TEXT: Format = {
  mediaType: 'text/plain',
  version: '0.0.4',
  head({ textName, type, meter }) {
    return `# HELP ${textName} ${helpText(meter.description, false)}\n# TYPE ${textName} ${type}\n`;
  },
  end: '',
};

/** Its successor, with units. */
export const OPEN_METRICS: Format = {
  mediaType: 'application/openmetrics-text',
  version: '1.0.0',
  head({ name, type, unit, meter }) {
    const unitLine = unit === undefined ? '' : `# UNIT ${name} ${unit}\n`;
    return `# TYPE ${name} ${type}\n${unitLine}# HELP ${name} ${helpText(meter.description, true)}\n`;
  },
  end: '# EOF\n',
};

const VERSIONS = new Map([TEXT, OPEN_METRICS].map(({ mediaType, version }) => [mediaType, version]));

/**
 * The format that an Accept header wants most; one that accepts neither gets the older format. Unlike elsewhere the
 * version is a part of the name: a scraper lists those that it reads.
 */
export function formatFor(accept: string | undefined): Format {
  const type = preferred(accept, [...VERSIONS.keys()], isOurVersion);
  return type === OPEN_METRICS.mediaType ? OPEN_METRICS : TEXT;
}

function isOurVersion(range: Weighted): boolean {
  const version = parameterOf(range, 'version');
  return version === undefined || version === VERSIONS.get(range.name);
}
