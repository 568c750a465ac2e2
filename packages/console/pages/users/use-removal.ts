import { useEffect, useRef, useState } from 'react';
import { act } from '../../data/api.ts';
import { say } from '../../parts/toasts.tsx';
import type { User } from './users-table.tsx';

/** Time in which a deletion can be undone, in milliseconds. */
const UNDO = 6_000;

/** Deletes a user after a few seconds, so that it can be undone; at once if the user leaves the page. */
export function useRemoval(onRemoved: () => void) {
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const waiting = useRef(new Map<number, ReturnType<typeof setTimeout>>());

  const show = (id: number) => setHidden((before) => new Set([...before].filter((each) => each !== id)));
  async function removeNow(id: number): Promise<void> {
    clearTimeout(waiting.current.get(id));
    waiting.current.delete(id);
    try {
      await act('DELETE', `users/${id}`);
    } catch (error) {
      say('bad', (error as Error).message);
      show(id);
    }
    onRemoved();
  }
  const now = useRef(removeNow);
  now.current = removeNow;

  useEffect(() => {
    const finish = () => {
      for (const id of waiting.current.keys()) void now.current(id);
    };
    addEventListener('pagehide', finish);
    return () => {
      removeEventListener('pagehide', finish);
      finish();
    };
  }, []);

  function remove({ id, name }: User): void {
    setHidden((before) => new Set([...before, id]));
    waiting.current.set(
      id,
      setTimeout(() => void now.current(id), UNDO),
    );
    say('info', `${name} is deleted`, () => {
      clearTimeout(waiting.current.get(id));
      waiting.current.delete(id);
      show(id);
    });
  }
  return { hidden, remove };
}
