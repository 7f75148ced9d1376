/** The table of healthchecks' API: method, path, scope. Paths of other APIs are not in it. */

import type { Scope } from '../../domain/access.ts'
import type { Call, Reply } from './call.ts'
import { createCheck, deleteCheck, getCheck, listChecks, pauseCheck, resumeCheck, updateCheck } from './checks.ts'
import { getPingBody, listFlips, listPings } from './history.ts'
import type { Version } from './present.ts'
import { listBadges, listChannels } from './project.ts'

export interface Operation {
  readonly scope: Scope
  readonly handle: (call: Call) => Promise<Reply>
}

const read = (handle: Operation['handle']): Operation => ({ scope: 'read', handle })
const write = (handle: Operation['handle']): Operation => ({ scope: 'write', handle })

/** `open`: without a credential; it says that the database responds. */
type Methods = Readonly<Record<string, Operation | 'open'>>

/**
 * `{check}`: a uuid or a unique key. Read-only keys of healthchecks reach the calls of the scope read, and no others.
 */
const TABLE: Readonly<Record<string, Methods>> = {
  'checks/': { GET: read(listChecks), POST: write(createCheck) },
  'checks/{uuid}': { GET: read(getCheck), POST: write(updateCheck), DELETE: write(deleteCheck) },
  'checks/{unique_key}': { GET: read(getCheck) },
  'checks/{uuid}/pause': { POST: write(pauseCheck) },
  'checks/{uuid}/resume': { POST: write(resumeCheck) },
  'checks/{uuid}/pings/': { GET: write(listPings) },
  'checks/{uuid}/pings/{n}/body': { GET: write(getPingBody) },
  'checks/{uuid}/flips/': { GET: read(listFlips) },
  'checks/{unique_key}/flips/': { GET: read(listFlips) },
  'channels/': { GET: write(listChannels) },
  'badges/': { GET: read(listBadges) },
  'status/': { GET: 'open', HEAD: 'open' },
}

const PARTS: Readonly<Record<string, string>> = {
  '{uuid}': '(?<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})',
  '{unique_key}': '(?<unique_key>[0-9a-f]{40})',
  '{n}': '(?<n>[0-9]{1,15})',
}

const PATHS = Object.entries(TABLE).map(([path, methods]) => ({
  path,
  methods,
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, (part) => PARTS[part]!)}$`, 'i'),
}))

export interface Found {
  readonly version: Version
  /** For logs and metrics: never the path of the request. */
  readonly route: string
  readonly methods: Methods
  readonly params: Readonly<Record<string, string | undefined>>
}

/** Null for a path that is not in the table. */
export function findPath(path: string): Found | null {
  const [, version, rest] = /^\/api\/v([123])\/(.*)$/s.exec(path) ?? []
  if (version === undefined || rest === undefined) return null
  for (const { path, methods, pattern } of PATHS) {
    const match = pattern.exec(rest)
    if (match === null) continue
    return { version: Number(version) as Version, route: `/healthchecks/${path}`, methods, params: { ...match.groups } }
  }
  return null
}
