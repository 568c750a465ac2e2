import { createLocalJWKSet, createRemoteJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { describeError } from '../../core/describe-error.ts';
import { ConfigError } from '../config-error.ts';
import { watchedFile } from '../watched-file.ts';
import type { GateSetting } from './open-gate.ts';

/** Timeout of a read of the keys, in milliseconds. */
const TIMEOUT = 5_000;
/** The pause between two reads for keys that tokens name and nobody knows, in milliseconds. */
const COOLDOWN = 30_000;
/** How old the keys may be, in milliseconds: a key that is withdrawn is not used any longer. */
const MAX_AGE = 600_000;

/** The keys of an identity provider; disposing of it ends what follows their file. */
export interface JwtKeys extends Disposable {
  readonly get: JWTVerifyGetKey;
}

/** The keys at a URL, or in a file, which is followed. Throws ConfigError. */
export function jwtKeys(place: string, { resolve, log, name }: GateSetting): JwtKeys {
  const what = `${name}: api.jwt.jwks`;
  if (/^https?:\/\//i.test(place)) {
    const url = URL.parse(place);
    if (url === null) throw new ConfigError([`${what} is no URL`]);
    const get = createRemoteJWKSet(url, {
      timeoutDuration: TIMEOUT,
      cooldownDuration: COOLDOWN,
      cacheMaxAge: MAX_AGE,
    });
    return { get, [Symbol.dispose]() {} };
  }
  const read = () => {
    const found = resolve.file(what, place);
    if ('problem' in found) throw new ConfigError([found.problem]);
    return { text: found.text, path: found.path, keys: keysOf(found.text, what) };
  };
  let current = read();
  const readAgain = () => {
    try {
      const next = read();
      if (next.text === current.text) return;
      current = next;
      log.info('keys of the identity provider reloaded');
    } catch (error) {
      log.error(
        { problem: describeError(error) },
        'changed keys of the identity provider unusable, old ones kept',
      );
    }
  };
  const watched = current.path === undefined ? undefined : watchedFile(current.path, readAgain);
  return {
    get: (header, token) => current.keys(header, token),
    [Symbol.dispose]: () => watched?.[Symbol.dispose](),
  };
}

function keysOf(text: string, what: string): JWTVerifyGetKey {
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
  } catch {
    throw new ConfigError([`${what} names a file that is no JSON Web Key Set`]);
  }
}
