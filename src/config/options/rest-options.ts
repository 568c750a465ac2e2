import { SEARCH_LEVELS } from '../../users/search-level.ts';
import { corsOptions } from './access/cors-options.ts';
import { choice, count, port, toggle } from './option.ts';

/** The options of the REST door and of the users that it serves. */
export const restOptions = {
  'rest.port': port({
    env: 'REST_PORT',
    default: 8000,
    description: 'Port of the REST door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  'rest.search': choice({
    env: 'REST_SEARCH',
    default: 'none',
    choices: SEARCH_LEVELS,
    description:
      'Indexes of users, which lists of more than 10,000 users need to filter or sort by name and email: keys for whole values, prefixes and orders, text also for parts of them; none makes creates cheapest (none, keys, text).',
  }),
  'rest.idempotencyHours': count({
    env: 'REST_IDEMPOTENCY_HOURS',
    default: 24,
    min: 1,
    description: 'Time for which the outcome of a create with an Idempotency-Key is kept, in hours.',
  }),
  'rest.maxImportBytes': count({
    env: 'REST_MAX_IMPORT_BYTES',
    default: 4 * 1024 ** 3,
    description:
      'Maximum size of an import of users over REST, in bytes; what came before the limit was reached stays stored.',
  }),
  'rest.requireIfMatch': toggle({
    env: 'REST_REQUIRE_IF_MATCH',
    default: false,
    description:
      'Whether updates and deletions over REST need If-Match, so that no client overwrites what it has not read.',
  }),
  ...corsOptions('rest', 'REST'),
  'rest.maxStreams': count({
    env: 'REST_MAX_STREAMS',
    default: 1_000,
    min: 1,
    description: 'Maximum number of event streams of the REST door at the same time.',
  }),
  'users.maxEvents': count({
    env: 'USERS_MAX_EVENTS',
    default: 100_000,
    min: 1_000,
    description:
      'Maximum number of events of users (created, updated, deleted) that the database keeps for those who follow them.',
  }),
  'users.eventHours': count({
    env: 'USERS_EVENT_HOURS',
    default: 24,
    min: 1,
    description: 'Time for which the database keeps an event of a user, in hours.',
  }),
  'users.uniqueEmail': toggle({
    env: 'USERS_UNIQUE_EMAIL',
    default: false,
    description:
      'Whether no two users of the database may have the same email, A to Z in either case. The start refuses a database with duplicates and names them.',
  }),
} as const;
