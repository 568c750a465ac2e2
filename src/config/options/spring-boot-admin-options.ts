import { text, toggle } from './option.ts';

const ownUrl = {
  placeholder: 'url',
  expected: 'an http or https URL, without credentials and query',
  pattern: { test: (given: string) => isUrl(given, false) },
};

/** The options of the registration with a Spring Boot Admin server. */
export const springBootAdminOptions = {
  'management.springBootAdmin.url': text({
    env: 'SPRING_BOOT_ADMIN_URL',
    unset: 'not registered',
    secret: true,
    placeholder: 'url',
    expected: 'an http or https URL, without a query',
    pattern: { test: (given) => isUrl(given, true) },
    description:
      'Spring Boot Admin server to register with; http://user:password@host if it asks for credentials.',
  }),
  'management.springBootAdmin.name': text({
    env: 'SPRING_BOOT_ADMIN_NAME',
    unset: 'the name of the package',
    description: 'Name that the server shows.',
  }),
  'management.springBootAdmin.managementUrl': text({
    ...ownUrl,
    env: 'SPRING_BOOT_ADMIN_MANAGEMENT_URL',
    unset: 'where the management door listens',
    description: 'URL at which the server reaches the management endpoints, with the base path.',
  }),
  'management.springBootAdmin.serviceUrl': text({
    ...ownUrl,
    env: 'SPRING_BOOT_ADMIN_SERVICE_URL',
    unset: 'the root of the management URL',
    description: 'URL of the service that the server links to.',
  }),
  'management.springBootAdmin.user': text({
    env: 'SPRING_BOOT_ADMIN_USER',
    unset: 'none',
    expected: 'a user name without ":" and control characters',
    pattern: /^[^:\p{Cc}]+$/u,
    description: 'User that the server logs in to the management endpoints as; Portico sends it the name.',
  }),
  'management.springBootAdmin.password': text({
    env: 'SPRING_BOOT_ADMIN_PASSWORD',
    unset: 'none',
    secret: true,
    expected: 'a password without control characters',
    description: 'Password of that user; Portico sends it to the server.',
  }),
  'management.springBootAdmin.jvmMetrics': toggle({
    env: 'SPRING_BOOT_ADMIN_JVM_METRICS',
    default: true,
    description: "Meters under the names of a JVM while registered, for the server's panels.",
  }),
} as const;

function isUrl(text: string, withCredentials: boolean): boolean {
  // URL parsers repair these silently, which is never what the user meant.
  if (/[\s\p{Cc}\\?#]/u.test(text) || !/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return withCredentials || (username === '' && password === '');
}
