/** The calls of healthchecks' API about the project of the key. */

import { findTags } from '../../checks/find-checks.ts'
import { type Call, findBadgeKey, findChannels, ok, type Reply } from './call.ts'
import { presentBadges } from './present.ts'

export async function listChannels(call: Call): Promise<Reply> {
  return ok({ channels: (await findChannels(call)).map(({ id, name, kind }) => ({ id, name, kind })) })
}

export async function listBadges(call: Call): Promise<Reply> {
  const { context, caller, siteUrl } = call
  const badgeKey = await findBadgeKey(call)
  async function* write() {
    const tags = badgeKey === null ? [] : await findTags(context, caller, caller.projectId)
    yield JSON.stringify({ badges: presentBadges(tags, { siteUrl, badgeKey }) })
  }
  return { list: write() }
}
