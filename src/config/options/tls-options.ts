import { text } from './option.ts';

const path = {
  placeholder: 'file',
  expected: 'the path of a file',
  pattern: /^\P{Cc}*[^\p{Cc}\s]\P{Cc}*$/u,
} as const;

/** The options of TLS, for all doors on ports. */
export const tlsOptions = {
  'tls.cert': text({
    ...path,
    env: 'TLS_CERT',
    unset: 'plain HTTP',
    description:
      'File with the certificate of all doors and its intermediates, as PEM; requires tls.key. The doors then speak TLS 1.2 and 1.3 only. Changes of the files are used without a restart.',
  }),
  'tls.key': text({
    ...path,
    env: 'TLS_KEY',
    unset: 'plain HTTP',
    description: 'File with the private key of that certificate, as PEM.',
  }),
  'management.clientCa': text({
    ...path,
    env: 'MANAGEMENT_CLIENT_CA',
    unset: 'no client certificates',
    description:
      'File with the authorities, as PEM, of which a client of the management door must have a certificate; requires tls.cert.',
  }),
  'webhook.clientCa': text({
    ...path,
    env: 'WEBHOOK_CLIENT_CA',
    unset: 'no client certificates',
    description:
      'File with the authorities, as PEM, of which a client of the webhook door must have a certificate; requires tls.cert.',
  }),
} as const;
