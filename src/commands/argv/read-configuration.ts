import { type Config, loadConfig } from '../../config/load.ts';
import type { CommandArguments } from './command-arguments.ts';

/** The configuration that a service called with the same options would have. Rejects with ConfigError. */
export function readConfiguration(args: CommandArguments): Promise<Config> {
  return loadConfig({ argv: args.config, env: process.env, cwd: process.cwd() });
}
