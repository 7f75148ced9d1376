/** The calls of healthchecks' API about the project of the key. */

import { findTags } from '../../checks/find-checks.ts'
import { getProjectKey } from '../../tenancy/project-keys.ts'
import { type Call, findChannels, ok, type Reply } from './call.ts'
import { presentBadges } from './present.ts'

export async function listChannels(call: Call): Promise<Reply> {
  return ok({ channels: (await findChannels(call)).map(({ id, name, kind }) => ({ id, name, kind })) })
}

export async function listBadges({ context, caller, siteUrl }: Call): Promise<Reply> {
  const badgeKey = await getProjectKey(context, caller, caller.projectId, 'badge')
  const tags = badgeKey === null ? [] : await findTags(context, caller, caller.projectId)
  return ok({ badges: presentBadges(tags, { siteUrl, badgeKey }) })
}
