import type { CommandUsage } from '../command-usage.ts';

export const sendUsage: CommandUsage = {
  topic: 'send',
  words: '[options]',
  about:
    'Sends a delivery to a receiver, signed as its sender would. Without options it goes to the webhook door of this ' +
    'configuration, at /webhook, with its token.',
  options: [
    {
      flag: '--source',
      value: 'name',
      description: 'Send as this sender of webhook.sources: its scheme, its secret and its layout.',
    },
    {
      flag: '--url',
      value: 'url',
      description: 'Where to, when it is another receiver. An address without a path means its webhook door.',
    },
    {
      flag: '--scheme',
      value: 'word',
      description:
        'How to sign: standard, github, stripe, slack, hmac, token or none. [default: that of the source, else token]',
    },
    { flag: '--secret', value: 'text', secret: true, description: 'Sign with this secret.' },
    { flag: '--secret-file', value: 'file', description: 'Sign with the secret in this file.' },
    {
      flag: '--signature-header',
      value: 'name',
      description: 'The header of the signature for --scheme hmac, or of the token for --scheme token.',
    },
    {
      flag: '--event',
      value: 'name',
      description: "The event, by the sender's own name. [default: test]",
    },
    {
      flag: '--data',
      value: 'json',
      description: "The event's data: JSON, @file, or - for standard input. [default: {}]",
    },
    {
      flag: '--body',
      value: 'json',
      description: 'The whole body, sent byte for byte, in place of --data: JSON, @file, or -.',
    },
    {
      flag: '--header',
      value: 'name: text',
      repeatable: true,
      description: 'One more header; can be given more than once.',
    },
    {
      flag: '--id',
      value: 'text',
      description:
        "The sender's id of the delivery, by which a receiver knows duplicates. [default: a new one]",
    },
    {
      flag: '--count',
      value: 'n',
      description:
        'Send so many, one after the other, each with an id of its own unless --id is given. [default: 1]',
    },
    { flag: '--json', description: 'One JSON document instead of text.' },
  ],
  examples: [
    `portico send --event new_commit --data '{"sha":"c0ffee"}'`,
    'portico send --source github --event push --data @push.json',
    'portico send --url https://example.com/hooks --scheme standard --secret-file secret.txt',
  ],
};
