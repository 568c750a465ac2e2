import { useEffect, useState } from 'react';

/** A page and its parameters, as the part of the URL behind # has them: `#/deliveries?status=dead`. */
export interface Route {
  readonly page: string;
  /** What is behind the page's name: the id of a delivery, the name of a meter. */
  readonly item: string;
  readonly query: URLSearchParams;
}

function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s, 2);
  const [page = '', ...rest] = path.split('/');
  return { page: page || 'overview', item: decode(rest.join('/')), query: new URLSearchParams(query) };
}

/** The link to a page; parameters without a value are left out. */
export function linkTo(
  page: string,
  item = '',
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const search = new URLSearchParams(given).toString();
  return `#/${page}${item && `/${encodeURIComponent(item)}`}${search && `?${search}`}`;
}

/** Goes to a link; in place of the one before it for a change of a filter. */
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
