import { type Access, accessLevels } from '../config/options/access.ts';
import { comparableEndpointId } from '../config/options/endpoint-id.ts';
import type { Property } from '../config/sources.ts';
import { hideSecrets, type SecretTexts } from '../core/redaction.ts';

export type { Access } from '../config/options/access.ts';

export interface AccessRules {
  /** For endpoints that `endpoints` does not name. Default: each endpoint's own level. */
  readonly default?: Access | undefined;
  /** By endpoint id; case, `-` and `.` are ignored. */
  readonly endpoints?: ReadonlyMap<string, Access> | undefined;
  /** Upper bound for all endpoints. Default: unrestricted. */
  readonly max?: Access | undefined;
}

/** Returns the access for an endpoint's id and own level, which applies unless one is configured. */
export function accessRules(rules: AccessRules): (id: string, own: Access | undefined) => Access {
  const { max = 'unrestricted', endpoints = new Map<string, Access>() } = rules;
  const named = new Map(Array.from(endpoints, ([id, level]) => [comparableEndpointId(id), level]));
  return (id, own = 'unrestricted') => {
    const level = named.get(comparableEndpointId(id)) ?? rules.default ?? own;
    return accessLevels.indexOf(level) <= accessLevels.indexOf(max) ? level : max;
  };
}

const MASK = '******';

/** When to show the values of properties: `settings` shows those of the service's own. Only authorised requests pass the guard. */
type ShowValues = 'never' | 'settings' | 'when-authorized' | 'always';

/** Matched anywhere in a name without separators: hiding a harmless value beats showing a secret. */
const SECRET_PARTS =
  /password|passwd|passphrase|secret|token|key|credential|authorization|cookie|session|dsn|databaseurl|connectionstring|jwt|bearer|signature|applicationjson|vcapservices/;

/** Matched as a word of a name. PWD alone is the working directory. */
const SECRET_WORDS = new Set(['pass', 'auth', 'pat', 'salt', 'otp', 'pin', 'sas', 'cred', 'creds']);
const PASSWORD_WORD = /[^a-z]pwd$|^pwd[^a-z]/;

/** Whether a property's name suggests a secret, in any style: `DB_PASSWORD`, `apiKey`, `database.url`. */
export function isSecretName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1.$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  if (SECRET_PARTS.test(words.join('')) || words.some((word) => SECRET_WORDS.has(word))) return true;
  return PASSWORD_WORD.test(words.join('.')) && words.join('') !== 'oldpwd';
}

// Parsers of web URLs accept any number of slashes and backslashes, and ignore line breaks and tabs.
const START = String.raw`(?:[/\\][\t\r\n]*[/\\]|\b(?:https?|wss?|ftp):)[/\\\t\r\n]*(?![/\\\t\r\n])`;
const AUTHORITY = new RegExp(`(${START})([^/?#]*)`, 'gi');
const TORN_AUTHORITY = new RegExp(String.raw`(${START})(?!\*{6}@)([^/?#@]*)[/?#][^\n]{0,2000}@`, 'gi');
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])?(?::\d*)?(?:,|$)/i;

/**
 * Masks the userinfo of every URL in a text: `postgres://me:secret@host` becomes `postgres://******@host`. A
 * password may contain an unescaped `/`, `?` or `#`: then it masks everything up to the last `@`.
 */
export function maskUserinfo(text: string): string {
  if (!text.includes('@')) return text;
  return text
    .replace(AUTHORITY, (whole, start: string, authority: string) => {
      const at = authority.lastIndexOf('@');
      return at === -1 ? whole : `${start}${MASK}${authority.slice(at)}`;
    })
    .replace(TORN_AUTHORITY, (whole, start: string, authority: string) =>
      HOST.test(authority) ? whole : `${start}${MASK}@`,
    );
}

// The lookbehind keeps matching linear: only the first letter of a word can start a name.
const ASSIGNMENT = /(?<![\w.-])([\w.-]+)=(?:"[^"]*"|'[^']*'|[^\s&;]+)/g;

/** Masks userinfo in URLs and the values of secrets, as in `host=db password=x` or `?token=x`. */
export function maskSecrets(text: string): string {
  return maskUserinfo(text).replace(ASSIGNMENT, (whole, name: string) =>
    isSecretName(name) ? `${name}=${MASK}` : whole,
  );
}

/** Like `maskSecrets`, and masks the known secrets, of which any text may contain a copy. */
export function maskText(text: string, { texts }: SecretTexts): string {
  return maskSecrets(hideSecrets(text, texts));
}

/** A property's value as it may be shown. */
type ShowValue = (name: string, property: Pick<Property, 'value' | 'secret'>, isSetting?: boolean) => unknown;

/** Shows plain values and lists of them, with `secrets` redacted; of others, only the type. */
export function valueShower(showValues: ShowValues, secrets: SecretTexts): ShowValue {
  return (name, { value, secret }, isSetting = true) => {
    const isHidden = showValues === 'never' || (showValues === 'settings' && !isSetting);
    if (isHidden || secret || isSecretName(name)) return MASK;
    return Array.isArray(value) ? value.map((item) => plainValue(item, secrets)) : plainValue(value, secrets);
  };
}

function plainValue(value: unknown, secrets: SecretTexts): unknown {
  if (typeof value === 'string') return maskText(value, secrets);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  return value === undefined || value === null ? null : `(a value of type ${typeof value})`;
}
