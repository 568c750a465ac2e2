/** A project that `portico init` writes. */
export interface Project {
  /** The name of the package, the container and the unit: small letters, digits and hyphens. */
  readonly name: string;
  /** The name of this package, and what its dependency says. */
  readonly dependency: readonly [name: string, source: string];
  /** The tarball beside package.json that it depends on, if it is one. */
  readonly tarball: string | undefined;
  /** The version of Node that the image has. */
  readonly node: string;
}

/** The files of a project besides its configuration module, by name: each is complete and works as it stands. */
export function projectFiles(project: Project): Readonly<Record<string, string>> {
  return {
    'package.json': manifest(project),
    '.gitignore': IGNORED,
    '.dockerignore': `${IGNORED}.git\n*.test.mjs\n`,
    Dockerfile: dockerfile(project),
    'compose.yaml': compose(project),
    [`${project.name}.service`]: unit(project),
    'service.test.mjs': TEST,
  };
}

/** The name of a project in a folder. */
export function projectName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return name === '' ? 'my-service' : name;
}

function manifest({ name, dependency: [own, source] }: Project): string {
  const json = {
    name,
    private: true,
    type: 'module',
    engines: { node: '>=24' },
    scripts: { start: 'portico serve', test: 'node --test' },
    dependencies: { [own]: source },
  };
  return `${JSON.stringify(json, null, 2)}\n`;
}

const IGNORED = `node_modules/
.env
portico.db
portico.db-*
`;

function dockerfile({ dependency: [own], tarball, node }: Project): string {
  const packages = ['package.json', 'package-lock.json', ...(tarball === undefined ? [] : [tarball])];
  return `# docker build -t app . (after "npm install", which writes package-lock.json)
FROM node:${node}-trixie-slim
WORKDIR /app
COPY ${packages.join(' ')} ./
RUN npm ci --omit=dev --ignore-scripts
COPY . .
# A folder for the data that the user below may write to: the volume takes over its owner.
RUN ["install", "-d", "-o", "65532", "-g", "65532", "-m", "0750", "/data"]
ENV NODE_ENV=production \\
    NODE_DISABLE_COMPILE_CACHE=1 \\
    HOST=0.0.0.0 \\
    DATABASE_URL=sqlite:/data/portico.db
USER 65532:65532
VOLUME ["/data"]
EXPOSE 4000 8000 8080 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["node", "node_modules/${own}/bin/portico.js", "health"]
# Node itself is the first process and gets the signals; no shell and no npm is between.
ENTRYPOINT ["node", "node_modules/${own}/bin/portico.js"]
CMD ["serve"]
`;
}

function compose({ name }: Project): string {
  return `# docker compose up --build
name: ${name}

services:
  ${name}:
    build: .
    ports:
      # Loopback of the host; put a proxy in front of what others may use. The management door is not published.
      - 127.0.0.1:4000:4000
      - 127.0.0.1:8000:8000
      - 127.0.0.1:3000:3000
    volumes:
      - data:/data
    read_only: true
    tmpfs:
      - /tmp
    cap_drop:
      - ALL
    security_opt:
      - no-new-privileges:true
    # Longer than the pre-stop delay and the 10 s of a stop.
    stop_grace_period: 30s
    restart: unless-stopped

volumes:
  data:
`;
}

function unit({ name, dependency: [own] }: Project): string {
  return `# Install it from this folder, after "npm install":
#   sudo mkdir -p /opt/${name} && sudo cp -r . /opt/${name}
#   sudo cp ${name}.service /etc/systemd/system/
#   sudo systemctl daemon-reload && sudo systemctl enable --now ${name}
# Settings stand in /etc/${name}.env (KEY=value), data in /var/lib/${name}. Its log: journalctl -u ${name}
[Unit]
Description=${name}, a Portico service
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
# Node itself and not npm, which would not pass the signal on.
ExecStart=/usr/bin/node node_modules/${own}/bin/portico.js serve
EnvironmentFile=-/etc/${name}.env
Environment=NODE_ENV=production NODE_DISABLE_COMPILE_CACHE=1 DATABASE_URL=sqlite:/var/lib/${name}/portico.db
WorkingDirectory=/opt/${name}
StateDirectory=${name}
StateDirectoryMode=0700
UMask=0077
# Exit code 2 is a configuration that no restart mends.
Restart=on-failure
RestartPreventExitStatus=2
RestartSec=2
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=30
LimitNOFILE=65536
DynamicUser=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
RemoveIPC=yes
# AF_NETLINK: by it the system tells the addresses of the machine.
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`;
}

const TEST = `// npm test: starts the service in memory, on free ports, and uses it as a client does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createService, loadConfig } from 'portico';

const env = {
  DATABASE_URL: 'sqlite::memory:',
  GRAPHQL_PORT: '0',
  REST_PORT: '0',
  MANAGEMENT_PORT: '0',
  PORT: '0',
  LOG_LEVEL: 'silent',
  SHUTDOWN_PRE_STOP_DELAY: '0',
};

test('the service is healthy, and stores a user', async () => {
  const service = await createService(await loadConfig({ argv: [], env, cwd: import.meta.dirname }));
  try {
    const { management, rest } = await service.listen();
    const health = await fetch(\`\${management}/actuator/health\`);
    assert.equal((await health.json()).status, 'UP');
    const body = JSON.stringify({ name: 'Ada', email: 'ada@example.com' });
    await fetch(\`\${rest}/users\`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    assert.match(await (await fetch(\`\${rest}/users/1\`)).text(), /"name":"Ada"/);
  } finally {
    await service.stop();
  }
});
`;
