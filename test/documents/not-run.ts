/** Commands of documents that no test runs, each with the reason, and who tests what it does. */
export const NOT_RUN: readonly { readonly command: RegExp; readonly why: string }[] = [
  { command: /^docker /, why: 'needs a daemon; test/deploy/dockerfile.test.ts runs the steps of the image' },
  { command: /^(?:helm|kubectl) /, why: 'needs a cluster; test/deploy/kubernetes.test.ts renders the chart' },
  {
    command: /^(?:apt-get|systemctl) /,
    why: 'needs root and an init; .ci/run installs the packages and stops their servers',
  },
  { command: /^litestream /, why: 'needs the program, which Debian has no package of' },
  { command: /^npm ci(?: && npm (?:start|test))?(?: |$)/, why: 'CI itself runs it, and then the tests' },
  { command: /^npm (?:test|run check|run proof)(?: |$)/, why: 'CI itself runs it' },
  {
    command: /^NODE_OPTIONS=\S+stalls\.ts" npm test$/,
    why: 'takes as long as all tests, which CI runs without it',
  },
  { command: /^npm (?:start|run build)(?: +#|$)/, why: 'test/process/npm-start.test.ts runs both' },
  {
    command: /^npm (?:(?:ci --prefix|run) bench|run scaling)(?: |$)/,
    why: 'takes minutes, and programs that only it needs',
  },
  {
    command: /^PORTICO_LONG_LIST=/,
    why: 'takes minutes; test/faults/long-list.test.ts has fewer users',
  },
  {
    command: /^npm install /,
    why: 'needs a registry; test/process/package-install.test.ts installs from one of its own',
  },
  {
    command: /^npx openapi-typescript /,
    why: 'needs TypeScript 5; test/openapi/generated-client.test.ts has what it makes',
  },
];
