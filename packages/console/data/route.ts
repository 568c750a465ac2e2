import { useEffect, useState } from 'react';

/** A page and its parameters, from the URL's fragment: `#/deliveries?status=dead`. */
export interface Route {
  readonly page: string;
  /** The part after the page's name: the id of a delivery, the name of a meter. */
  readonly item: string;
  readonly query: URLSearchParams;
}

function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s, 2);
  const [page = '', ...rest] = path.split('/');
  return { page: page || 'overview', item: decode(rest.join('/')), query: new URLSearchParams(query) };
}

/** The link to a page; parameters without a value are omitted. */
export function linkTo(
  page: string,
  item = '',
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const search = new URLSearchParams(given).toString();
  return `#/${page}${item && `/${encodeURIComponent(item)}`}${search && `?${search}`}`;
}

/** Follows a link. `replace` replaces the history entry, as for a changed filter. */
export function goTo(link: string, replace = false): void {
  if (replace) {
    history.replaceState(null, '', link);
    dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = link;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return readRoute(hash);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
