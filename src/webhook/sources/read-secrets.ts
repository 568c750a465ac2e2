import type { SecretResolver } from '../../config/sources/secret-resolver.ts';
import { quote } from '../../core/quote.ts';
import { entriesOf, isRecord } from '../../core/record.ts';
import { type SchemeName, secretProblem } from '../schemes/schemes.ts';

const ONE = 'a secret, { env: NAME } or { file: PATH }';

/**
 * Reads the secrets of a source and resolves those that are only named. What is wrong goes to `problems`, by its
 * path and never with a secret in it. Without a scheme only the form is checked.
 */
export function readSecrets(
  value: unknown,
  path: string,
  scheme: SchemeName | undefined,
  resolve: SecretResolver,
  problems: string[],
): readonly string[] {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) {
    problems.push(`${path} must be ${ONE}, or an array of at least one of these`);
    return [];
  }
  const entries = Array.isArray(value) ? Array.from<unknown>(value) : [value];
  return entries.flatMap((entry, index) => {
    const at = Array.isArray(value) ? `${path}[${index}]` : path;
    const found = readSecret(entry, at, resolve);
    if ('problem' in found) {
      problems.push(found.problem);
      return [];
    }
    const problem = scheme === undefined ? undefined : secretProblem(scheme, found.text);
    if (problem !== undefined) problems.push(`${found.name} ${problem}`);
    return problem === undefined ? found.text : [];
  });
}

/** A secret, and how messages call it. */
type Found = { readonly text: string; readonly name: string } | { readonly problem: string };

function readSecret(entry: unknown, at: string, resolve: SecretResolver): Found {
  if (typeof entry === 'string') return { text: entry, name: at };
  const [reference, ...others] = isRecord(entry) ? entriesOf(entry) : [];
  if (reference === undefined || others.length > 0) return { problem: `${at} must be ${ONE}` };
  const [kind, target] = reference;
  if (typeof target !== 'string' || target === '') return { problem: `${at} must be ${ONE}` };
  if (kind === 'env') {
    const text = resolve.env(target);
    // A secret that slipped in place of a name must not be shown.
    const shown = /^[A-Z][A-Z0-9_]*$/.test(target) ? ` ${target}` : '';
    const name = `${at} names the environment variable${shown}, which`;
    return text === undefined ? { problem: `${name} is not set` } : { text, name };
  }
  if (kind === 'file') {
    const read = resolve.file(at, target);
    return 'problem' in read
      ? read
      : { text: read.text, name: `${at} names the file ${quote(target)}, whose text` };
  }
  return { problem: `${at} must be ${ONE}` };
}
