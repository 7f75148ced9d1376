/** The management API: one line for each operation, with the scope that its caller needs. Paths are below {base_url}. */

import type { Caller, Scope } from '../../domain/access.ts'
import { createApiKey, listApiKeys, revokeApiKey } from './api-keys.ts'
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
import { listDeliveries, retryDelivery } from './deliveries.ts'
import { listFlips, listPings } from './history.ts'
import { getDocument, getMe } from './me.ts'
import { createProject, listProjects, removeProject } from './projects.ts'
import type { Endpoint, Method, Route } from './route.ts'
import { createUser, listUsers, removeUser } from './users.ts'

export const ROUTES: readonly Route[] = [
  route('GET', '/checks', 'read', listChecks),
  route('POST', '/checks', 'write', createCheck),
  route('GET', '/checks/{id}', 'read', getCheck),
  route('PUT', '/checks/{id}', 'write', updateCheck),
  route('DELETE', '/checks/{id}', 'write', removeCheck),
  route('PATCH', '/checks/{id}/pause', 'write', pauseCheck),
  route('PATCH', '/checks/{id}/resume', 'write', resumeCheck),
  route('GET', '/checks/{id}/pings', 'read', listPings),
  route('GET', '/checks/{id}/flips', 'read', listFlips),

  route('GET', '/channels', 'read', listChannels),
  route('POST', '/channels', 'admin', createChannel),
  route('GET', '/channels/{id}', 'read', getChannel),
  route('PUT', '/channels/{id}', 'admin', updateChannel),
  route('DELETE', '/channels/{id}', 'admin', removeChannel),
  route('POST', '/channels/{id}/test', 'admin', testChannel),
  route('POST', '/channels/{id}/rotate-secret', 'admin', rotateSecret),

  route('GET', '/deliveries', 'read', listDeliveries),
  route('POST', '/deliveries/{id}/retry', 'write', retryDelivery),

  route('GET', '/projects', 'read', listProjects),
  route('POST', '/projects', 'admin', createProject),
  route('DELETE', '/projects/{id}', 'admin', removeProject),

  route('GET', '/api-keys', 'admin', listApiKeys),
  route('POST', '/api-keys', 'admin', createApiKey),
  route('DELETE', '/api-keys/{id}', 'admin', revokeApiKey),

  route('GET', '/users', 'admin', listUsers),
  route('POST', '/users', 'admin', createUser),
  route('DELETE', '/users/{id}', 'admin', removeUser),

  route('GET', '/me', 'read', getMe),

  openRoute('POST', '/auth/login', logIn),
  openRoute('POST', '/auth/refresh', refresh),
  openRoute('POST', '/auth/logout', logOut),
  openRoute('GET', '/openapi.json', getDocument),
]

function route(method: Method, path: Route['path'], scope: Scope, endpoint: Endpoint<Caller>): Route {
  return { method, path, scope, endpoint }
}

function openRoute(method: Method, path: Route['path'], endpoint: Endpoint<null>): Route {
  return { method, path, scope: null, endpoint }
}
