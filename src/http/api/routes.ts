/** The management API: one line for each operation, with the scope that its caller needs. Paths are below {base_url}. */

import type { Caller, Scope } from '../../domain/access.ts'
import type { AuditAction } from '../../domain/audit.ts'
import { createApiKey, getApiKey, listApiKeys, revokeApiKey, updateApiKey } from './api-keys.ts'
import { listAudit } from './audit.ts'
import { logIn, logOut, refresh } from './auth.ts'
import {
  createChannel,
  getChannel,
  listChannels,
  removeChannel,
  rotateSecret,
  testChannel,
  updateChannel,
} from './channels.ts'
import { createCheck, getCheck, listChecks, pauseCheck, removeCheck, resumeCheck, updateCheck } from './checks.ts'
import { getDelivery, listDeliveries, retryDelivery } from './deliveries.ts'
import { getPing, getPingBody, listFlips, listPings } from './history.ts'
import { changePassword, endSession, getDocument, getMe, listSessions } from './me.ts'
import {
  createBadgeKey,
  createPingKey,
  getBadgeKey,
  getPingKey,
  revokeBadgeKey,
  revokePingKey,
} from './project-keys.ts'
import { createProject, getProject, listProjects, removeProject, updateProject } from './projects.ts'
import type { Endpoint, Method, Route } from './route.ts'
import { createUser, getUser, listUsers, removeUser, updateUser } from './users.ts'

/** Of a call that changes no configuration: it is not in the audit log. */
const NO_CHANGE = 'no change'

export const ROUTES: readonly Route[] = [
  route('GET', '/checks', 'read', listChecks),
  route('POST', '/checks', 'write', createCheck, 'check.created'),
  route('GET', '/checks/{id}', 'read', getCheck),
  ...withAlso('PUT', route('PATCH', '/checks/{id}', 'write', updateCheck, 'check.changed')),
  route('DELETE', '/checks/{id}', 'write', removeCheck, 'check.removed'),
  ...withAlso('PATCH', route('POST', '/checks/{id}/pause', 'write', pauseCheck, 'check.paused')),
  ...withAlso('PATCH', route('POST', '/checks/{id}/resume', 'write', resumeCheck, 'check.resumed')),
  route('GET', '/checks/{id}/pings', 'read', listPings),
  route('GET', '/checks/{id}/pings/{ping_id}', 'read', getPing),
  route('GET', '/checks/{id}/pings/{ping_id}/body', 'read', getPingBody),
  route('GET', '/checks/{id}/flips', 'read', listFlips),

  route('GET', '/channels', 'read', listChannels),
  route('POST', '/channels', 'admin', createChannel, 'channel.created'),
  route('GET', '/channels/{id}', 'read', getChannel),
  ...withAlso('PUT', route('PATCH', '/channels/{id}', 'admin', updateChannel, 'channel.changed')),
  route('DELETE', '/channels/{id}', 'admin', removeChannel, 'channel.removed'),
  route('POST', '/channels/{id}/test', 'admin', testChannel, NO_CHANGE),
  route('POST', '/channels/{id}/rotate-secret', 'admin', rotateSecret, 'channel.secret_rotated'),

  route('GET', '/deliveries', 'read', listDeliveries),
  route('GET', '/deliveries/{id}', 'read', getDelivery),
  route('POST', '/deliveries/{id}/retry', 'write', retryDelivery, NO_CHANGE),

  route('GET', '/projects', 'read', listProjects),
  route('POST', '/projects', 'admin', createProject, 'project.created'),
  route('GET', '/projects/{id}', 'read', getProject),
  ...withAlso('PUT', route('PATCH', '/projects/{id}', 'admin', updateProject, 'project.changed')),
  route('DELETE', '/projects/{id}', 'admin', removeProject, 'project.removed'),
  route('GET', '/projects/{id}/ping-key', 'admin', getPingKey),
  route('POST', '/projects/{id}/ping-key', 'admin', createPingKey, 'project.changed'),
  route('DELETE', '/projects/{id}/ping-key', 'admin', revokePingKey, 'project.changed'),
  route('GET', '/projects/{id}/badge-key', 'admin', getBadgeKey),
  route('POST', '/projects/{id}/badge-key', 'admin', createBadgeKey, 'project.changed'),
  route('DELETE', '/projects/{id}/badge-key', 'admin', revokeBadgeKey, 'project.changed'),

  route('GET', '/api-keys', 'admin', listApiKeys),
  route('POST', '/api-keys', 'admin', createApiKey, 'api_key.created'),
  route('GET', '/api-keys/{id}', 'admin', getApiKey),
  ...withAlso('PUT', route('PATCH', '/api-keys/{id}', 'admin', updateApiKey, 'api_key.changed')),
  route('DELETE', '/api-keys/{id}', 'admin', revokeApiKey, 'api_key.removed'),

  route('GET', '/users', 'admin', listUsers),
  route('POST', '/users', 'admin', createUser, 'user.created'),
  route('GET', '/users/{id}', 'admin', getUser),
  ...withAlso('PUT', route('PATCH', '/users/{id}', 'admin', updateUser, 'user.changed')),
  route('DELETE', '/users/{id}', 'admin', removeUser, 'user.removed'),

  route('GET', '/audit', 'admin', listAudit),

  route('GET', '/me', 'read', getMe),
  route('PUT', '/me/password', 'read', changePassword, 'password.changed'),
  route('GET', '/me/sessions', 'read', listSessions),
  route('DELETE', '/me/sessions/{id}', 'read', endSession, 'session.ended'),

  openRoute('POST', '/auth/login', logIn, 'login.succeeded'),
  openRoute('POST', '/auth/refresh', refresh, NO_CHANGE),
  openRoute('POST', '/auth/logout', logOut, 'logout'),
  openRoute('GET', '/openapi.json', getDocument),
]

/** What a change adds to the audit log. */
type Audits = readonly [AuditAction, ...AuditAction[]] | readonly [typeof NO_CHANGE]
type Change = Exclude<Method, 'GET'>

function route(method: 'GET', path: Route['path'], scope: Scope, endpoint: Endpoint<Caller>): Route
function route(method: Change, path: Route['path'], scope: Scope, endpoint: Endpoint<Caller>, ...audits: Audits): Route
function route(
  method: Method,
  path: Route['path'],
  scope: Scope,
  endpoint: Endpoint<Caller>,
  ...audits: Audits | []
): Route {
  return { method, path, scope, endpoint, audits: audits.filter((action) => action !== NO_CHANGE) }
}

/** A call that takes a second method, too. The first method is the one that documents use. */
function withAlso(method: Change, first: Route): [Route, Route] {
  const { endpoint, path } = first
  const id = `${endpoint.id}By${method.charAt(0)}${method.slice(1).toLowerCase()}`
  const summary = `The same as ${first.method} ${path}`
  return [first, { ...first, method, endpoint: { ...endpoint, id, summary }, sameAs: endpoint.id }]
}

function openRoute(method: 'GET', path: Route['path'], endpoint: Endpoint<null>): Route
function openRoute(method: Change, path: Route['path'], endpoint: Endpoint<null>, ...audits: Audits): Route
function openRoute(method: Method, path: Route['path'], endpoint: Endpoint<null>, ...audits: Audits | []): Route {
  return { method, path, scope: null, endpoint, audits: audits.filter((action) => action !== NO_CHANGE) }
}
