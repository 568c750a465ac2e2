import { JwtTokens } from '../../http/access/jwt-tokens.ts';
import { ConfigError } from '../config-error.ts';
import { jwtOptions } from '../options/access/jwt-options.ts';
import { jwtKeys } from './jwt-keys.ts';
import type { GateSetting, JwtOptions } from './open-gate.ts';

/** Opens the tokens of an identity provider, and what follows its keys. Throws ConfigError. */
export function openJwt(options: JwtOptions, setting: GateSetting) {
  const { issuer, audience, jwks } = options;
  if (issuer === undefined || audience === undefined || jwks === undefined) {
    throw new ConfigError([`${setting.name}: api.jwt needs issuer, audience and jwks`]);
  }
  const keys = jwtKeys(jwks, setting);
  const source = new JwtTokens({
    issuer,
    audience: [audience].flat(),
    scopesClaim: options.scopesClaim ?? jwtOptions['api.jwt.scopesClaim'].default,
    clockSkew: options.clockSkew ?? jwtOptions['api.jwt.clockSkew'].default,
    keys: keys.get,
    log: setting.log,
  });
  return { source, keys };
}
