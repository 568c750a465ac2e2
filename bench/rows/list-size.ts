/** The number of users in a row's database: `PORTICO_BENCH_USERS`, or a number that is quick to store. */
export function listUsers(): number {
  return Number(process.env.PORTICO_BENCH_USERS ?? 100_000);
}
