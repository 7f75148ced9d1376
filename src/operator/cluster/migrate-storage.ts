/**
 * Moves the stored HeartbeatChecks to the version that the CustomResourceDefinition stores now. The API server converts what it
 * reads, so nothing waits for this; but it rejects a definition that lacks a version which `status.storedVersions` names. A write that
 * changes nothing stores an object anew if its stored version differs, and is no write otherwise. It works in both directions:
 * to v1 after an upgrade, and back to v1alpha1 before a rollback (docs/operations.md, "Back to the release before").
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError, hasStatus } from '../../kubernetes/errors.ts'
import { type KubernetesObject, keyOf, type ObjectName, type ResourceType } from '../../kubernetes/objects.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { DEFINITION_NAME, HEARTBEAT_CHECKS, type HeartbeatCheck } from '../heartbeat-check.ts'

export interface StorageMigrationOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'list' | 'mergePatch'>
  readonly clock: Pick<Clock, 'now' | 'sleep'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** The part of a CustomResourceDefinition that is read. */
export interface Definition extends KubernetesObject {
  readonly spec: { readonly versions: readonly { readonly name: string; readonly storage: boolean }[] }
  readonly status?: { readonly storedVersions?: readonly string[] }
}

export const DEFINITIONS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
}
/** Replicas of the API server learn of a changed definition one after the other; until then they store the previous version. */
export const SETTLE_MS = 5_000
const PAGE = 100
const MAX_NAMED = 3
/** A rejected object stays so until a person corrects it. */
const RETRY = { firstMs: 60_000, maxMs: 3_600_000 }
/** More rejected objects than this are not remembered: all are listed again when these could be written. */
const MAX_REJECTED = 1_000

/** Some objects could not be stored anew; the message names them. */
class StorageError extends Error {
  override readonly name = 'StorageError'
}

/** The objects of a pass that still have to be written. */
interface Rest {
  /** Of which definition: its generation and what it stores. */
  readonly of: string
  readonly names: readonly ObjectName[]
  readonly isWhole: boolean
  /** In a row. */
  readonly failures: number
  readonly retryAt: number
}

/**
 * Returns a function that does what there is to do now. For an operator that sees the HeartbeatChecks of all namespaces: what it does
 * not see would stay behind. Throws what another call may resolve.
 */
export function createStorageMigration(options: StorageMigrationOptions): (stopping: AbortSignal) => Promise<void> {
  const { client, clock, log } = options
  let isRightMissing = false
  let rest: Rest | null = null

  return async function migrateStorage(stopping) {
    try {
      const definition = await client.get<Definition>(DEFINITIONS, { name: DEFINITION_NAME })
      const { version, others } = readVersions(definition)
      if (version === undefined || others.length === 0) {
        rest = null
        return
      }
      const of = `${definition.metadata.generation} ${version}`
      if (rest?.of !== of) rest = null
      if (rest !== null && clock.now() < rest.retryAt) return
      await clock.sleep(SETTLE_MS, stopping)
      if (stopping.aborted) return
      const count = await storeRest(of, stopping)
      if (count === null) return
      // If the definition has changed since it was read, another version may have been stored meanwhile: Conflict.
      const { resourceVersion } = definition.metadata
      const patch = { metadata: { resourceVersion }, status: { storedVersions: [version] } }
      await client.mergePatch(DEFINITIONS, { name: DEFINITION_NAME }, patch, { subresource: 'status' })
      log.info({ version, count, former: others }, 'all HeartbeatChecks are stored in the version of the definition')
    } catch (error) {
      if (hasStatus(error, 404)) return
      if (!(error instanceof ApiError && error.status === 403)) throw error
      if (!isRightMissing)
        log.warn(
          { error },
          `the right to get customresourcedefinitions/${DEFINITION_NAME} and to patch its status is missing: apply the rights of this release; until then HeartbeatChecks stay stored in the version of their last write`,
        )
      isRightMissing = true
    }
  }

  /** All objects, or those that were rejected before. Returns the number of those written; null when `stopping` aborts. Throws StorageError. */
  async function storeRest(of: string, stopping: AbortSignal): Promise<number | null> {
    const failures = rest?.failures ?? 0
    const first = await storeAnew(client, rest?.names ?? (await listNames(client)), stopping)
    if (first === null) return null
    const isWhole = rest?.isWhole ?? true
    // Only some of those that were rejected were remembered.
    const pass =
      isWhole || first.rejected.length > 0 ? first : await storeAnew(client, await listNames(client), stopping)
    if (pass === null) return null
    const { count, rejected } = pass
    if (rejected.length === 0) {
      rest = null
      return count
    }
    const names = rejected.slice(0, MAX_REJECTED).map(({ name }) => name)
    const retryAt = clock.now() + backoffMs(failures, RETRY)
    rest = { of, names, isWhole: isWhole && names.length === rejected.length, failures: failures + 1, retryAt }
    throw new StorageError(describeFailures(rejected.map(({ why }) => why)))
  }
}

/** The version that is stored now, and others in which objects may be stored. */
function readVersions({ spec, status }: Definition): { version: string | undefined; others: readonly string[] } {
  const version = spec.versions.find(({ storage }) => storage)?.name
  return { version, others: (status?.storedVersions ?? []).filter((stored) => stored !== version) }
}

interface Rejected {
  readonly name: ObjectName
  readonly why: string
}

/** One write at a time: reconciles come first. Null when `stopping` aborts. */
async function storeAnew(
  client: StorageMigrationOptions['client'],
  names: readonly ObjectName[],
  stopping: AbortSignal,
): Promise<{ readonly count: number; readonly rejected: readonly Rejected[] } | null> {
  const rejected: Rejected[] = []
  let count = 0
  for (const name of names) {
    if (stopping.aborted) return null
    try {
      await client.mergePatch(HEARTBEAT_CHECKS, name, {})
      count += 1
    } catch (error) {
      if (hasStatus(error, 404)) continue
      if (!(error instanceof ApiError && [400, 403, 409, 422].includes(error.status))) throw error
      rejected.push({ name, why: `${keyOf(name)} (${error.message})` })
    }
  }
  return { count, rejected }
}

/** All of them before the first write: the next page of a list can be had for five minutes, and the writes may take longer. */
async function listNames(client: StorageMigrationOptions['client']): Promise<ObjectName[]> {
  const names: ObjectName[] = []
  let continueToken: string | undefined
  do {
    const where = { limit: PAGE, ...(continueToken === undefined ? {} : { continueToken }) }
    const page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, where)
    for (const { metadata } of page.items) names.push({ namespace: metadata.namespace!, name: metadata.name })
    continueToken = page.continueToken ?? undefined
  } while (continueToken !== undefined)
  return names
}

function describeFailures(failures: readonly string[]): string {
  const more = failures.length > MAX_NAMED ? ` and ${failures.length - MAX_NAMED} more` : ''
  return `the API server rejects an unchanged write of ${failures.slice(0, MAX_NAMED).join(', ')}${more}: correct or delete these HeartbeatChecks`
}
