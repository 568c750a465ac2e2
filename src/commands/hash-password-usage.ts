import type { CommandUsage } from './command-usage.ts';

export const hashPasswordUsage: CommandUsage = {
  topic: 'hash-password',
  words: '[--argon2id]',
  about:
    'Asks for a password twice, or reads it from standard input, and prints its hash for MANAGEMENT_PASSWORD.',
  options: [{ flag: '--argon2id', description: 'Hash by Argon2id instead of scrypt.' }],
};
