import type { CommandUsage } from './command-usage.ts';

export const hashPasswordUsage: CommandUsage = {
  topic: 'hash-password',
  words: '[--argon2id]',
  // A password given as an argument has a message of its own.
  maxWords: Number.POSITIVE_INFINITY,
  about:
    'Asks for a password twice, or reads it from standard input, and prints its scrypt hash for MANAGEMENT_PASSWORD.',
  options: [{ flag: '--argon2id', description: 'Hashes by Argon2id instead of scrypt.' }],
  standalone: true,
};
