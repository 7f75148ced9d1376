/** The ping key and the badge key of a project (design, section 3.5). */

import { z } from 'zod'
import { createProjectKey, getProjectKey, type ProjectKeyKind, revokeProjectKey } from '../../tenancy/project-keys.ts'
import * as field from './fields.ts'
import { ProjectParams } from './projects.ts'
import { endpoint } from './route.ts'

const PATTERN = '^[A-Za-z0-9]{22}$'

const PING_KEY =
  'Key of the addresses `{ping_url}/ping/{ping_key}/{slug}`: the right to ping all checks of the project.'
const BADGE_KEY = 'Key of the addresses `/badge/{badge_key}/{slug}.svg`: the right to see the statuses of the project.'

export const [getPingKey, createPingKey, revokePingKey] = keyEndpoints('ping', 'PingKey', PING_KEY)
export const [getBadgeKey, createBadgeKey, revokeBadgeKey] = keyEndpoints('badge', 'BadgeKey', BADGE_KEY)

function keyEndpoints(kind: ProjectKeyKind, id: string, description: string) {
  const key = z.string().meta({ pattern: PATTERN, description })
  const shape = (id: string, value: z.ZodType): z.ZodObject => field.shape(id, { [`${kind}_key`]: value })
  const show = (value: string | null) => ({ [`${kind}Key`]: value })
  return [
    endpoint({
      summary: `Get the ${kind} key of a project`,
      params: ProjectParams,
      response: shape(id, key.nullable().meta({ description: 'Null: the project has none.' })),
      handle: async ({ context, caller, params }) => show(await getProjectKey(context, caller, params.id, kind)),
    }),
    endpoint({
      summary: `Create the ${kind} key of a project; the one before is revoked at once`,
      params: ProjectParams,
      status: 201,
      response: shape(`New${id}`, key),
      handle: async ({ context, caller, params }) => show(await createProjectKey(context, caller, params.id, kind)),
    }),
    endpoint({
      summary: `Revoke the ${kind} key of a project`,
      params: ProjectParams,
      handle: ({ context, caller, params }) => revokeProjectKey(context, caller, params.id, kind),
    }),
  ] as const
}
