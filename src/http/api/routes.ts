/** The management API: one line for each operation, with the scope that its caller needs. Paths are below {base_url}. */

import type { Caller, Scope } from '../../domain/access.ts'
import type { AuditAction } from '../../domain/audit.ts'
import * as apiKeys from './api-keys.ts'
import * as audit from './audit.ts'
import * as auth from './auth.ts'
import * as channels from './channels.ts'
import * as checks from './checks.ts'
import * as deliveries from './deliveries.ts'
import * as history from './history.ts'
import * as me from './me.ts'
import * as projectKeys from './project-keys.ts'
import * as projects from './projects.ts'
import type { Endpoint, Method, Route } from './route.ts'
import * as silences from './silences.ts'
import * as users from './users.ts'

/** The endpoints by their names, which are the ids of their operations. */
const ENDPOINTS = {
  ...checks,
  ...history,
  ...channels,
  ...deliveries,
  ...silences,
  ...projects,
  ...projectKeys,
  ...apiKeys,
  ...users,
  ...audit,
  ...me,
  ...auth,
}

/** Of a call that changes no configuration: it is not in the audit log. */
const NO_CHANGE = 'no change'

export const ROUTES: readonly Route[] = [
  route('GET', '/checks', 'read', 'listChecks'),
  route('POST', '/checks', 'write', 'createCheck', 'check.created'),
  route('GET', '/checks/{id}', 'read', 'getCheck'),
  ...withAlso('PUT', route('PATCH', '/checks/{id}', 'write', 'updateCheck', 'check.changed')),
  route('DELETE', '/checks/{id}', 'write', 'removeCheck', 'check.removed'),
  route('POST', '/checks/{id}/acknowledge', 'write', 'acknowledgeCheck', 'check.acknowledged'),
  route('DELETE', '/checks/{id}/acknowledge', 'write', 'unacknowledgeCheck', 'check.unacknowledged'),
  ...withAlso('PATCH', route('POST', '/checks/{id}/pause', 'write', 'pauseCheck', 'check.paused')),
  ...withAlso('PATCH', route('POST', '/checks/{id}/resume', 'write', 'resumeCheck', 'check.resumed')),
  route('GET', '/checks/{id}/pings', 'read', 'listPings'),
  route('GET', '/checks/{id}/pings/{ping_id}', 'read', 'getPing'),
  route('GET', '/checks/{id}/pings/{ping_id}/body', 'read', 'getPingBody'),
  route('GET', '/checks/{id}/flips', 'read', 'listFlips'),

  route('GET', '/channels', 'read', 'listChannels'),
  route('POST', '/channels', 'admin', 'createChannel', 'channel.created'),
  route('GET', '/channels/{id}', 'read', 'getChannel'),
  ...withAlso('PUT', route('PATCH', '/channels/{id}', 'admin', 'updateChannel', 'channel.changed')),
  route('DELETE', '/channels/{id}', 'admin', 'removeChannel', 'channel.removed'),
  route('POST', '/channels/{id}/test', 'admin', 'testChannel', NO_CHANGE),
  route('POST', '/channels/{id}/rotate-secret', 'admin', 'rotateSecret', 'channel.secret_rotated'),

  route('GET', '/deliveries', 'read', 'listDeliveries'),
  route('GET', '/deliveries/{id}', 'read', 'getDelivery'),
  route('POST', '/deliveries/{id}/retry', 'write', 'retryDelivery', NO_CHANGE),

  route('GET', '/silences', 'read', 'listSilences'),
  route('POST', '/silences', 'write', 'createSilence', 'silence.created'),
  route('GET', '/silences/{id}', 'read', 'getSilence'),
  route('DELETE', '/silences/{id}', 'write', 'removeSilence', 'silence.removed'),

  route('GET', '/projects', 'read', 'listProjects'),
  route('POST', '/projects', 'admin', 'createProject', 'project.created'),
  route('GET', '/projects/{id}', 'read', 'getProject'),
  ...withAlso('PUT', route('PATCH', '/projects/{id}', 'admin', 'updateProject', 'project.changed')),
  route('DELETE', '/projects/{id}', 'admin', 'removeProject', 'project.removed'),
  route('GET', '/projects/{id}/ping-key', 'admin', 'getPingKey'),
  route('POST', '/projects/{id}/ping-key', 'admin', 'createPingKey', 'project.changed'),
  route('DELETE', '/projects/{id}/ping-key', 'admin', 'revokePingKey', 'project.changed'),
  route('GET', '/projects/{id}/badge-key', 'admin', 'getBadgeKey'),
  route('POST', '/projects/{id}/badge-key', 'admin', 'createBadgeKey', 'project.changed'),
  route('DELETE', '/projects/{id}/badge-key', 'admin', 'revokeBadgeKey', 'project.changed'),

  route('GET', '/api-keys', 'admin', 'listApiKeys'),
  route('POST', '/api-keys', 'admin', 'createApiKey', 'api_key.created'),
  route('GET', '/api-keys/{id}', 'admin', 'getApiKey'),
  ...withAlso('PUT', route('PATCH', '/api-keys/{id}', 'admin', 'updateApiKey', 'api_key.changed')),
  route('DELETE', '/api-keys/{id}', 'admin', 'revokeApiKey', 'api_key.removed'),

  route('GET', '/users', 'admin', 'listUsers'),
  route('POST', '/users', 'admin', 'createUser', 'user.created'),
  route('GET', '/users/{id}', 'admin', 'getUser'),
  ...withAlso('PUT', route('PATCH', '/users/{id}', 'admin', 'updateUser', 'user.changed')),
  route('DELETE', '/users/{id}', 'admin', 'removeUser', 'user.removed'),

  route('GET', '/audit', 'admin', 'listAudit'),

  route('GET', '/me', 'read', 'getMe'),
  route('PUT', '/me/password', 'read', 'changePassword', 'password.changed'),
  route('GET', '/me/sessions', 'read', 'listSessions'),
  route('DELETE', '/me/sessions/{id}', 'read', 'endSession', 'session.ended'),

  route('POST', '/auth/login', null, 'logIn', 'login.succeeded'),
  route('POST', '/auth/refresh', null, 'refresh', NO_CHANGE),
  route('POST', '/auth/logout', null, 'logOut', 'logout'),
  route('GET', '/openapi.json', null, 'getDocument'),
]

/** What a change adds to the audit log. */
type Audits = readonly [AuditAction, ...AuditAction[]] | readonly [typeof NO_CHANGE]

type Endpoints = typeof ENDPOINTS
/** The names of the endpoints with a credential, or without one. */
type NameOf<Who extends Caller | null> = {
  [Name in keyof Endpoints]: Endpoints[Name] extends Endpoint<Who> ? Name : never
}[keyof Endpoints]

function route<Verb extends Method, Needed extends Scope | null>(
  method: Verb,
  path: Route['path'],
  scope: Needed,
  id: NameOf<Needed extends null ? null : Caller>,
  ...audits: Verb extends 'GET' ? [] : Audits
): Route {
  const endpoint: Endpoint = ENDPOINTS[id]
  return { id, method, path, scope, endpoint, audits: audits.filter((action) => action !== NO_CHANGE) }
}

/** A call that takes a second method, too. The first method is the one that documents use. */
function withAlso(method: Exclude<Method, 'GET'>, first: Route): [Route, Route] {
  const { id: sameAs, endpoint, path } = first
  const id = `${sameAs}By${method.charAt(0)}${method.slice(1).toLowerCase()}`
  const summary = `The same as ${first.method} ${path}`
  return [first, { ...first, id, method, endpoint: { ...endpoint, summary }, sameAs }]
}
