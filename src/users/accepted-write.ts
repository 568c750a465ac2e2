import { HttpProblem } from '../http/problem.ts';
import { UserRefusedError } from './user-store.ts';

/** Passes on what a store answers to a write; what it refuses becomes a 409. */
export function accepted<T>(write: Promise<T>): Promise<T> {
  return write.catch((error: unknown) => {
    if (!(error instanceof UserRefusedError)) throw error;
    throw new HttpProblem(409, error.code, error.message);
  });
}
