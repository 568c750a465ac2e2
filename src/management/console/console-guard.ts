import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { prefersHtml } from '../../http/accept.ts';
import type { Reply } from '../../http/endpoint.ts';
import { HttpProblem } from '../../http/problem.ts';
import { send } from '../../http/send-reply.ts';
import { OwnHosts } from '../../http/server/own-hosts.ts';
import { principalOf } from '../access/guard.ts';
import { FORBIDDEN, refuse } from '../management-errors.ts';
import type { ConsoleView } from './console-view.ts';
import { isLocalClient } from './local-client.ts';

/** Sent with every action. No form and no other page can send it without asking first. */
export const ACTION_HEADER = 'x-portico-console';

export interface ConsoleGuardOptions extends Pick<ConsoleView, 'hosts' | 'role' | 'localOnly'> {
  /** Whether the door asks for credentials. */
  readonly secured: boolean;
  /** For a browser that may not see the console. */
  readonly refusal: (why: string) => Reply;
}

const problem = (message: string) => new HttpProblem(403, 'CONSOLE_REFUSED', message);

const REMOTE = problem(
  'The console is open to this machine alone, or with credentials: set MANAGEMENT_USER and MANAGEMENT_PASSWORD',
);
const HOST = problem('The Host header is no name of this door; HTTP_HOSTS adds names');
const ORIGIN = problem('An action has to come from the console itself');
const HEADER = problem(`An action needs the header ${ACTION_HEADER}`);

/** The hook of everything below the console. What needs credentials is decided by the hook of the base path before it. */
export function consoleGuard({
  secured,
  localOnly,
  hosts = [],
  role,
  refusal,
}: ConsoleGuardOptions): onRequestHookHandler {
  const ownHosts = new OwnHosts(hosts, 'all');

  function refusalOf(request: FastifyRequest): HttpProblem | undefined {
    if (!secured && !isLocalClient(request, localOnly)) return REMOTE;
    if (ownHosts.strangerOf(request) !== undefined) return HOST;
    if (request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS') return;
    if (!isSameOrigin(request)) return ORIGIN;
    if (request.headers[ACTION_HEADER] === undefined) return HEADER;
    return mayAct(request, role) ? undefined : FORBIDDEN;
  }

  return (request, reply: FastifyReply, done) => {
    const found = refusalOf(request);
    if (found === undefined) return done();
    if (request.method === 'GET' && prefersHtml(request.headers.accept, ['application/json'])) {
      send(reply, refusal(found.message));
    } else refuse(found, request, reply);
  };
}

/** Whether the user of a request has the role for actions. */
export function mayAct(request: FastifyRequest, role: string | undefined): boolean {
  return role === undefined || principalOf(request)?.roles.includes(role) === true;
}

/** Browsers name the origin of every write. Programs name none, and have to send the header. */
function isSameOrigin({ headers, protocol, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  return (
    headers.origin === undefined || headers.origin.toLowerCase() === `${protocol}://${host}`.toLowerCase()
  );
}
