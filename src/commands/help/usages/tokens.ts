import type { CommandUsage } from '../command-usage.ts';
import { json } from './shared.ts';

/** The subcommands of `tokens`. */
export const tokensUsages = {
  tokensCreate: {
    topic: 'tokens create',
    words: '<name> --scopes <scopes> [options]',
    maxWords: 1,
    about:
      'Makes a token for REST and GraphQL and prints it, once: the database has its digest only. Running services accept ' +
      'it at once.',
    options: [
      { flag: '--scopes', value: 'list', description: 'Scopes of the token, separated by commas.' },
      {
        flag: '--expires',
        value: 'time',
        description: 'When it ends: days like 90d, or a time like 2027-01-31. [default: never]',
      },
      json,
    ],
    examples: ['portico tokens create ci --scopes users:read,users:write --expires 90d'],
  },
  tokensList: {
    topic: 'tokens list',
    words: '[options]',
    about: 'Lists the tokens of the database, with their last use, which is up to a minute old.',
    options: [{ flag: '--all', description: 'Revoked tokens too.' }, json],
  },
  tokensRevoke: {
    topic: 'tokens revoke',
    words: '<name...> [options]',
    maxWords: Number.POSITIVE_INFINITY,
    about: 'Revokes tokens by name. Running services refuse them within 5 seconds.',
    options: [],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;
