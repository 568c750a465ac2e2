import { readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const GUIDE = readFileSync(join(ROOT, 'docs/OBSERVABILITY.md'), 'utf8');
/** The file of the guide that registers the SDK. */
const [, INSTRUMENTATION = ''] = /`instrumentation\.ts`:\n\n```ts\n(.*?)```/s.exec(GUIDE) ?? [];

/** The trace that tests send, and the span in it. */
export const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
export const SENDER = '00f067aa0ba902b7';
export const traced = { traceparent: `00-${TRACE}-${SENDER}-01`, 'content-type': 'application/json' };

/** Kinds of spans, as OTLP has them. */
export const KIND = { server: 2, client: 3, consumer: 5 } as const;

/** Puts the file of the guide into the folder of a project that has the packages of the guide. */
export async function instrument(folder: string): Promise<void> {
  await mkdir(join(folder, 'node_modules'), { recursive: true });
  await symlink(join(ROOT, 'node_modules/@opentelemetry'), join(folder, 'node_modules/@opentelemetry'));
  await writeFile(join(folder, 'instrumentation.ts'), INSTRUMENTATION);
}

/** The environment of the guide for a service in such a folder; `otlp` receives what it exports. */
export const instrumented = (otlp: string) => ({
  NODE_OPTIONS: '--import ./instrumentation.ts',
  OTEL_SERVICE_NAME: 'shop',
  OTEL_EXPORTER_OTLP_ENDPOINT: otlp,
});
