import type { CommandUsage } from '../command-usage.ts';
import { json, yes } from './shared.ts';

/** The commands that need no database. */
export const otherUsages = {
  init: {
    topic: 'init',
    words: '[folder] [options]',
    maxWords: 1,
    about:
      'Writes portico.config.mts with a handler, a health check and an endpoint into a folder, the current one by ' +
      'default. It overwrites nothing.',
    options: [
      {
        flag: '--package',
        description:
          'Writes a package.json too, where there is none: it depends on this package, so "npm install" and "npm start" ' +
          'start the service.',
      },
      yes,
    ],
    examples: ['portico init --yes', 'portico init my-service --package --yes'],
    standalone: true,
  },
  health: {
    topic: 'health',
    words: '[options]',
    about:
      'Asks the service of this configuration whether it is ready: /readyz of the management door, or, where that is ' +
      'closed, whether the other doors accept connections. Exit code 0: it is ready. Exit code 1: it is not, and ' +
      'standard error says why; a wrong option is 1 too, because container engines know no other code.',
    options: [
      {
        flag: '--url',
        value: 'url',
        description:
          'URL to ask; without a path /readyz there. [default: the management door of the configuration]',
      },
      {
        flag: '--timeout',
        value: 'ms',
        description: 'Time limit from the start of the command, in milliseconds. [default: 5000]',
      },
    ],
    examples: ['portico health', 'portico health --url http://127.0.0.1:8080 --timeout 1000'],
  },
  send: {
    topic: 'send',
    words: '[options]',
    about:
      'Sends a delivery to a receiver, signed as its sender would. Without options it goes to /webhook of the webhook ' +
      'door of this configuration, with its token.',
    options: [
      {
        flag: '--source',
        value: 'name',
        description: 'Sender of webhook.sources whose scheme, secret and layout are used.',
      },
      {
        flag: '--url',
        value: 'url',
        description: 'URL of another receiver; without a path the webhook door there.',
      },
      {
        flag: '--scheme',
        value: 'word',
        description:
          'Signature scheme: standard, github, stripe, slack, hmac, token or none. [default: that of --source, else token]',
      },
      { flag: '--secret', value: 'text', secret: true, description: 'Secret to sign with.' },
      { flag: '--secret-file', value: 'file', description: 'File that holds the secret to sign with.' },
      {
        flag: '--signature-header',
        value: 'name',
        description: 'Header of the signature for --scheme hmac, of the token for --scheme token.',
      },
      {
        flag: '--event',
        value: 'name',
        description:
          "Event, by the sender's own name or by the one that its source gives it. [default: test]",
      },
      {
        flag: '--data',
        value: 'json',
        description: 'Data of the event: JSON, @file, or - for standard input. [default: {}]',
      },
      {
        flag: '--body',
        value: 'json',
        description: 'Whole body, sent byte for byte, instead of --data: JSON, @file, or -.',
      },
      {
        flag: '--header',
        value: 'name: text',
        repeatable: true,
        description: 'Additional header; can be given more than once.',
      },
      {
        flag: '--id',
        value: 'text',
        description:
          'Id of the delivery, by which a receiver recognises duplicates. [default: a new one for each delivery]',
      },
      {
        flag: '--count',
        value: 'n',
        description: 'Number of deliveries, sent one after the other. [default: 1]',
      },
      json,
    ],
    examples: [
      `portico send --event new_commit --data '{"sha":"c0ffee"}'`,
      'portico send --source github --event push --data @push.json',
      'portico send --url https://example.com/hooks --scheme standard --secret-file secret.txt',
    ],
  },
  hashPassword: {
    topic: 'hash-password',
    words: '[--argon2id]',
    // A password given as an argument has a message of its own.
    maxWords: Number.POSITIVE_INFINITY,
    about:
      'Asks for a password twice, or reads it from standard input, and prints its scrypt hash for MANAGEMENT_PASSWORD.',
    options: [{ flag: '--argon2id', description: 'Hashes by Argon2id instead of scrypt.' }],
    standalone: true,
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;
