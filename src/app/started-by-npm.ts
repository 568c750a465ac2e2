/** How often the parent is looked at, in milliseconds. */
const INTERVAL = 250;

/** A script that leaves a command in the background: its shell ends before the command, as it should. */
const BACKGROUND = /(?<![&>])&(?![&>])|\b(?:nohup|setsid)\b/;

/**
 * Calls a listener once when the process that ran an npm script's command is gone; does nothing elsewhere. npm passes
 * SIGTERM to the shell that it puts between, and a shell such as dash ends without its child, which would run on.
 */
export function onNpmGone(env: NodeJS.ProcessEnv, listener: () => void): void {
  const { npm_lifecycle_script: script } = env;
  if (script === undefined || BACKGROUND.test(script)) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    listener();
  }, INTERVAL).unref();
}
