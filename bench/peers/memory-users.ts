export interface User {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

/** The same users that Portico serves; the environment sets their number. */
export function makeUsers(): readonly User[] {
  const seed = [
    { id: '1', name: 'Ada Lovelace', email: 'ada@example.com' },
    { id: '2', name: 'Alan Turing', email: 'alan@example.com' },
  ];
  const rest = Array.from({ length: Math.max(0, Number(process.env.USERS ?? 2) - 2) }, (_, i) => ({
    id: String(i + 3),
    name: `User ${i + 3}`,
    email: `user${i + 3}@example.com`,
  }));
  return [...seed, ...rest];
}
