import { resolve } from 'node:path';
import type { Settings } from '../../config/options/options.ts';
import type { LiveCertificate } from '../../http/tls/live-certificate.ts';
import type { Loggers } from '../../observability/log/loggers.ts';

/** The certificate of the doors, if they speak TLS. Rejects with CertificateError. */
export async function certificateOf(
  settings: Settings,
  loggers: Loggers,
): Promise<LiveCertificate | undefined> {
  const { 'tls.cert': cert, 'tls.key': key } = settings;
  if (cert === undefined || key === undefined) return undefined;
  // TLS is loaded only where it is used.
  const { LiveCertificate } = await import('../../http/tls/live-certificate.ts');
  const log = loggers.child('tls');
  const clientCas = (['management', 'webhook'] as const).flatMap((door) => {
    const path = settings[`${door}.clientCa`];
    return path === undefined ? [] : [[door, resolve(path)] as const];
  });
  const files = { cert: resolve(cert), key: resolve(key), clientCas: new Map(clientCas) };
  return new LiveCertificate(files, (problem, { validTo }) => {
    if (problem === undefined) log.info({ validTo }, 'TLS certificate reloaded');
    else log.error({ err: problem, validTo }, 'changed TLS files unusable, old ones kept');
  });
}
