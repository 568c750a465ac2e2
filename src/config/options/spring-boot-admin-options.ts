import { textKind } from './kind.ts';
import { type Option, optionalText, toggle, type WithoutDefault, withoutDefault } from './option.ts';

/** The options of the registration with a Spring Boot Admin server. */
export const springBootAdminOptions = {
  'management.springBootAdmin.url': optionalUrl({
    env: 'SPRING_BOOT_ADMIN_URL',
    unset: 'not registered',
    secret: true,
    expected: 'an http or https URL, without a query',
    description:
      'The Spring Boot Admin server to register with; http://user:password@host if it asks for credentials.',
  }),
  'management.springBootAdmin.name': optionalText({
    env: 'SPRING_BOOT_ADMIN_NAME',
    unset: 'the name of the package',
    description: 'The name that the server shows.',
  }),
  'management.springBootAdmin.managementUrl': optionalUrl({
    env: 'SPRING_BOOT_ADMIN_MANAGEMENT_URL',
    unset: 'where the management door listens',
    expected: 'an http or https URL, without credentials and query',
    description: 'Where the server reaches the management endpoints, with the base path.',
  }),
  'management.springBootAdmin.serviceUrl': optionalUrl({
    env: 'SPRING_BOOT_ADMIN_SERVICE_URL',
    unset: 'the root of the management URL',
    expected: 'an http or https URL, without credentials and query',
    description: 'Where the link to the service leads.',
  }),
  'management.springBootAdmin.user': optionalText({
    env: 'SPRING_BOOT_ADMIN_USER',
    unset: 'none',
    expected: 'a user name without ":" and control characters',
    pattern: /^[^:\p{Cc}]+$/u,
    description: 'The user that the server logs in to the management endpoints as; it is told so.',
  }),
  'management.springBootAdmin.password': optionalText({
    env: 'SPRING_BOOT_ADMIN_PASSWORD',
    unset: 'none',
    secret: true,
    expected: 'a password without control characters',
    description: 'The password of that user, which the server is told.',
  }),
  'management.springBootAdmin.jvmMetrics': toggle({
    env: 'SPRING_BOOT_ADMIN_JVM_METRICS',
    default: true,
    description: 'Whether a registered service also measures under the names of a JVM, for the panels there.',
  }),
} as const;

/** An http or https URL that may be missing; a secret one may hold credentials. */
function optionalUrl(spec: WithoutDefault & { readonly expected: string }): Option<string | undefined> {
  return withoutDefault(
    textKind('url', spec.expected, (text) => isUrl(text, spec.secret === true)),
    spec,
  );
}

function isUrl(text: string, withCredentials: boolean): boolean {
  // What a parser of URLs would mend silently is no URL that somebody meant.
  if (/[\s\p{Cc}\\?#]/u.test(text) || !/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return withCredentials || (username === '' && password === '');
}
