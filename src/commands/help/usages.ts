import { databaseUsages } from './usages/databases.ts';
import { deliveriesUsages } from './usages/deliveries.ts';
import { otherUsages } from './usages/others.ts';
import { tokensUsages } from './usages/tokens.ts';
import { usersUsages } from './usages/users.ts';

/** Every command that takes options of its own, in the order of the help. */
export const usages = {
  ...deliveriesUsages,
  ...usersUsages,
  ...otherUsages,
  ...tokensUsages,
  ...databaseUsages,
} as const;
