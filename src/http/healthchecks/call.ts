/** What the handlers of healthchecks' API take and return. */

import type { ChannelContext } from '../../channels/context.ts'
import { listChoosableChannels } from '../../checks/choose-channels.ts'
import { type Caller, includesScope } from '../../domain/access.ts'
import { getProjectKey } from '../../tenancy/project-keys.ts'
import type { Version, View } from './present.ts'

export interface BoundCaller extends Caller {
  readonly projectId: string
}

export interface Call {
  readonly context: ChannelContext
  readonly caller: BoundCaller
  readonly version: Version
  /** The parts of the path by name: `uuid` or `unique_key`, and `n`. */
  readonly params: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
  /** Empty unless it is a POST. */
  readonly body: Readonly<Record<string, unknown>>
  readonly siteUrl: string
  readonly pingUrl: string
}

/** JSON, a text, or a list of any size: the parts of its JSON (send-list.ts). */
export type Reply =
  | { readonly status: number; readonly json: object }
  | { readonly status: number; readonly text: string | Buffer }
  | { readonly list: AsyncIterator<string> }

export const ok = (json: object): Reply => ({ status: 200, json })

/** Whether the key sees what read-only keys of healthchecks see. */
export function isReadOnly({ caller }: Pick<Call, 'caller'>): boolean {
  return !includesScope(caller.scope, 'write')
}

/** All channels that the project's checks can notify, also of the whole organization: `*` means them, too. */
export function findChannels({ context, caller }: Call) {
  return listChoosableChannels(context, caller, caller.projectId)
}

/** Null: the project has none, or the key may only read: the badge key is a right that outlives it. */
export async function findBadgeKey(call: Call): Promise<string | null> {
  const { context, caller } = call
  return isReadOnly(call) ? null : getProjectKey(context, caller, caller.projectId, 'badge')
}

export async function findView(call: Call): Promise<View> {
  const { context, version, siteUrl, pingUrl } = call
  const badgeKey = await findBadgeKey(call)
  const channelIds = isReadOnly(call) ? null : (await findChannels(call)).map(({ id }) => id)
  return { version, now: context.clock.now(), siteUrl, pingUrl, badgeKey, channelIds }
}
