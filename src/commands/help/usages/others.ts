import type { CommandUsage } from '../command-usage.ts';
import { json } from './shared.ts';

/** The commands that need no database. */
export const otherUsages = {
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
        description: "Event, by the sender's own name. [default: test]",
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
