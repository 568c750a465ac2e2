import type { AuditData, AuditEntry } from './audit.ts';

/** Maximum length of a text. */
const MAX_TEXT = 200;
const MAX_FIELDS = 12;

/** An entry whose texts, which clients may have chosen, are short and can be stored and shown. */
export function boundedEntry({ principal, type, data, isAction }: AuditEntry): AuditEntry {
  const fields = Object.entries(data)
    .filter(([, value]) => value !== undefined)
    .slice(0, MAX_FIELDS)
    .map(([name, value]) => [name, typeof value === 'string' ? clean(value) : value]);
  return {
    principal: clean(principal),
    type: clean(type),
    data: Object.fromEntries(fields) as AuditData,
    isAction,
  };
}

function clean(text: string): string {
  return text
    .slice(0, MAX_TEXT)
    .toWellFormed()
    .replace(/\p{Cc}/gu, '\ufffd');
}
