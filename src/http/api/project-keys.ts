/** The ping key and the badge key of a project (design, section 3.5). */

import { createProjectKey, getProjectKey, revokeProjectKey } from '../../tenancy/project-keys.ts'
import { BadgeKey, NewBadgeKey, NewPingKey, PingKey } from './project-keys.schema.ts'
import { ProjectParams } from './projects.schema.ts'
import { endpoint } from './route.ts'

export const getPingKey = endpoint({
  summary: 'Get the ping key of a project',
  params: ProjectParams,
  response: PingKey,
  handle: async ({ context, caller, params }) => ({
    pingKey: await getProjectKey(context, caller, params.id, 'ping'),
  }),
})

export const createPingKey = endpoint({
  summary: 'Create the ping key of a project; the one before is revoked at once',
  params: ProjectParams,
  status: 201,
  response: NewPingKey,
  handle: async ({ context, caller, params }) => ({
    pingKey: await createProjectKey(context, caller, params.id, 'ping'),
  }),
})

export const revokePingKey = endpoint({
  summary: 'Revoke the ping key of a project',
  params: ProjectParams,
  handle: ({ context, caller, params }) => revokeProjectKey(context, caller, params.id, 'ping'),
})

export const getBadgeKey = endpoint({
  summary: 'Get the badge key of a project',
  params: ProjectParams,
  response: BadgeKey,
  handle: async ({ context, caller, params }) => ({
    badgeKey: await getProjectKey(context, caller, params.id, 'badge'),
  }),
})

export const createBadgeKey = endpoint({
  summary: 'Create the badge key of a project; the one before is revoked at once',
  params: ProjectParams,
  status: 201,
  response: NewBadgeKey,
  handle: async ({ context, caller, params }) => ({
    badgeKey: await createProjectKey(context, caller, params.id, 'badge'),
  }),
})

export const revokeBadgeKey = endpoint({
  summary: 'Revoke the badge key of a project',
  params: ProjectParams,
  handle: ({ context, caller, params }) => revokeProjectKey(context, caller, params.id, 'badge'),
})
