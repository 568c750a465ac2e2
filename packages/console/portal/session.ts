import { useEffect, useState } from 'react';
import { signIn } from '../data/api.ts';

/** Whether the page has a link: none was opened, one is used, or the service refused it. */
type Session = 'none' | 'open' | 'ended';

/** Tabs keep the token until they are closed, so that a reload needs no new link. */
const KEY = `portico:portal:${location.pathname}`;

let session: Session = 'none';
const watchers = new Set<(session: Session) => void>();

function tell(next: Session): void {
  session = next;
  for (const watcher of watchers) watcher(next);
}

/** Takes the token of a link out of the address bar, or the one that the tab keeps. */
export function openSession(): void {
  const given = takeToken();
  const token = given ?? kept();
  if (token !== undefined) use(token);
  // A link that is pasted into an open portal changes the fragment alone.
  addEventListener('hashchange', () => {
    if (takeToken() !== undefined) location.reload();
  });
}

function takeToken(): string | undefined {
  const token = /^#(v1\.[\w.-]+)$/.exec(location.hash)?.[1];
  if (token !== undefined) keep(token);
  if (token !== undefined || location.hash === '') history.replaceState(null, '', '#/endpoints');
  return token;
}

function use(token: string): void {
  signIn(token, () => {
    keep(undefined);
    tell('ended');
  });
  tell('open');
}

/** A browser may refuse storage to a page within another one. */
function kept(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

function keep(token: string | undefined): void {
  try {
    if (token === undefined) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  } catch {
    // The token stays in memory.
  }
}

export function useSession(): Session {
  const [shown, setShown] = useState(session);
  useEffect(() => {
    watchers.add(setShown);
    setShown(session);
    return () => {
      watchers.delete(setShown);
    };
  }, []);
  return shown;
}
