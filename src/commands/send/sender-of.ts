import { webhookSettings } from '../../app/doors/webhook-door.ts';
import type { Config } from '../../config/load.ts';
import { type SchemeName, schemeNames } from '../../config/schema/webhook-sources.ts';
import { readSecretFile } from '../../config/sources/secret-file.ts';
import { headerName } from '../../core/header-name.ts';
import { didYouMean } from '../../core/suggest.ts';
import { github } from '../../webhook/schemes/github.ts';
import { hmac } from '../../webhook/schemes/hmac.ts';
import type { Scheme, Signer } from '../../webhook/schemes/scheme.ts';
import { UnusableSecretError } from '../../webhook/schemes/scheme-error.ts';
import { slack } from '../../webhook/schemes/slack.ts';
import { standard } from '../../webhook/schemes/standard.ts';
import { stripe } from '../../webhook/schemes/stripe.ts';
import { bodyAlone } from '../../webhook/schemes/template.ts';
import { token } from '../../webhook/schemes/token.ts';
import { defaultLayout } from '../../webhook/sources/defaults.ts';
import { secretProblem } from '../../webhook/sources/read-secrets.ts';
import type { SourceLayout, SourceSettings } from '../../webhook/sources/source.ts';
import type { CommandArguments } from '../argv/command-arguments.ts';
import { misuse } from './misuse.ts';

/** The sender that a delivery is signed as. */
export interface SendAs {
  /** The path of the webhook door for such deliveries. */
  readonly path: string;
  /** Whether that path takes this scheme; otherwise --url is required. */
  readonly ownPath: boolean;
  readonly layout: SourceLayout;
  readonly sign: Signer;
}

const unsigned: Signer = () => ({});

/** The sender that the options describe. Throws UsageError, or ConfigError when webhook.sources cannot be used. */
export function senderOf(args: CommandArguments, config: Config): SendAs {
  const name = args.value('--source');
  const source = name === undefined ? undefined : findSource(name, config);
  const scheme = schemeOf(args, source);
  const path = source === undefined ? '/webhook' : `/webhook/${source.name}`;
  const ownPath = source !== undefined || scheme === 'none' || scheme === 'token';
  const layout = source ?? defaultLayout(scheme === 'none' ? 'token' : scheme);
  if (scheme === 'none') return { path, ownPath, layout, sign: unsigned };
  const signature = source?.scheme === scheme ? source.signature : signatureOf(scheme, args);
  const secrets = secretsOf(args, scheme, source, config);
  // /webhook without a secret takes deliveries without a token.
  if (secrets.length === 0 && scheme === 'token') return { path, ownPath, layout, sign: unsigned };
  if (secrets.length === 0) throw misuse(`--scheme ${scheme} needs --secret or --secret-file`);
  try {
    return { path, ownPath, layout, sign: signature.signer(secrets) };
  } catch (error) {
    if (!(error instanceof UnusableSecretError)) throw error;
    throw misuse(`${error.message}; give it with --secret or --secret-file`);
  }
}

function findSource(name: string, config: Config): SourceSettings {
  const { sources } = webhookSettings(config);
  const found = sources.find((source) => source.name === name);
  if (found !== undefined) return found;
  const names = sources.map((source) => source.name);
  const there = names.length === 0 ? 'there is none' : `there are ${names.join(', ')}`;
  throw misuse(`--source names no sender of webhook.sources${didYouMean(name, names) || `; ${there}`}`);
}

function schemeOf(args: CommandArguments, source: SourceSettings | undefined): SchemeName | 'none' {
  const given = args.value('--scheme');
  if (given === undefined) return source?.scheme ?? 'token';
  const known = [...schemeNames, 'none'] as const;
  const scheme = known.find((each) => each === given);
  if (scheme === undefined) {
    throw misuse(`--scheme must be one of ${known.join(', ')}${didYouMean(given, known)}`);
  }
  return scheme;
}

/** A scheme with its default parameters. */
function signatureOf(scheme: SchemeName, args: CommandArguments): Scheme {
  const given = args.value('--signature-header');
  const header = given === undefined ? undefined : headerName(given);
  if (given !== undefined && header === undefined)
    throw misuse('--signature-header must be the name of a header');
  switch (scheme) {
    case 'standard':
      return standard({ headerPrefix: 'webhook', tolerance: 0 });
    case 'github':
      return github;
    case 'stripe':
      return stripe(0);
    case 'slack':
      return slack(0);
    case 'token':
      return token(header ?? 'x-webhook-token');
    case 'hmac': {
      if (header === undefined) {
        throw misuse('--scheme hmac needs --signature-header, or a --source that says how it signs');
      }
      const plain = { algorithm: 'sha256', encoding: 'hex', prefix: '', timestampHeader: undefined } as const;
      return hmac({ header, ...plain, tolerance: 0, template: bodyAlone.fill });
    }
  }
}

function secretsOf(
  args: CommandArguments,
  scheme: SchemeName,
  source: SourceSettings | undefined,
  { settings }: Config,
): readonly string[] {
  const given = givenSecret(args);
  if (given !== undefined) {
    const problem = secretProblem(scheme, given);
    if (problem !== undefined) throw misuse(`the secret ${problem}`);
    return [given];
  }
  if (source !== undefined) return source.secrets;
  return scheme === 'token' ? (settings['webhook.secret'] ?? []) : [];
}

function givenSecret(args: CommandArguments): string | undefined {
  const file = args.value('--secret-file');
  const secret = args.value('--secret');
  if (file === undefined) return secret;
  if (secret !== undefined) throw misuse('--secret and --secret-file exclude each other');
  const read = readSecretFile('--secret-file', file, process.cwd());
  if ('problem' in read) throw misuse(read.problem);
  return read.text;
}
