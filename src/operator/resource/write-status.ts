/** How the status of a resource is written: never over that of another installation, nor on another resource. */

import { AppError } from '../../domain/errors.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError, hasStatus } from '../../kubernetes/errors.ts'
import type { ResourceType } from '../../kubernetes/objects.ts'
import { errorCode } from '../../runtime/error-code.ts'
import { STATUS_FIELD_MANAGER } from '../names.ts'
import { type CommonStatus, placeOf, type Resource } from './resource.ts'

const TO_STATUS = { subresource: 'status', fieldManager: STATUS_FIELD_MANAGER } as const

export interface StatusWriterOptions<T extends Resource> {
  readonly client: Pick<KubernetesClient, 'get' | 'replace'>
  readonly cache: { put(object: T): void }
  readonly type: ResourceType
  /** Our id. */
  readonly installation: string
}

/**
 * Returns a function that replaces the status, which costs the API server a fifth less than patching it. It throws
 * Conflict where another resource has the name by now, or another installation has the resource.
 */
export function createStatusWriter<Status extends CommonStatus, T extends Resource<Status>>(
  options: StatusWriterOptions<T>,
): (object: T, status: Status) => Promise<void> {
  const { client, cache, type, installation } = options

  return async function replaceStatus(object, status) {
    const replace = (seen: T) => client.replace<T>(type, { ...seen, status }, TO_STATUS)
    try {
      cache.put(await replace(object))
    } catch (error) {
      if (!hasStatus(error, 409)) throw error
      // The resource has changed since we read it.
      const current = await client.get<T>(type, placeOf(object))
      // The status describes a resource that we know; a new one of the same name must not get it.
      if (current.metadata.uid !== object.metadata.uid) throw error
      const owner = current.status?.installation
      if (owner !== object.status?.installation && owner !== installation) {
        // Another installation was faster: the next reconcile finds it in the cache.
        cache.put(current)
        throw error
      }
      cache.put(await replace(current))
    }
  }
}

export interface StatusPatcher<T extends Resource> {
  readonly client: Pick<KubernetesClient, 'mergePatch'>
  readonly cache: { put(object: T): void }
}

/** The version is a precondition: another installation may be writing the status. */
export async function patchStatus<T extends Resource>(
  { client, cache }: StatusPatcher<T>,
  type: ResourceType,
  object: T,
  status: Partial<NonNullable<T['status']>>,
): Promise<T> {
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status }
  const written = await client.mergePatch<T>(type, placeOf(object), patch, TO_STATUS)
  cache.put(written)
  return written
}

/** What a resource says that cannot be brought in line now, and is tried again. */
export const describeRetry = (error: unknown): string =>
  `this specification is not in effect yet, and the operator tries again: ${describeCause(error)}`

/**
 * For people who see the resource. An error with a code may name the hosts and the tables of the service; an answer
 * about a Secret or a ConfigMap may quote the object, and so a URL.
 */
function describeCause(error: unknown): string {
  if (error instanceof AppError) return error.message
  if (error instanceof ApiError && / (secrets|configmaps)\b/.test(error.request))
    return `the API server answered ${error.status} ${error.reason} to: ${error.request}`
  const code = errorCode(error)
  if (code !== undefined) return `an internal error (${code}), of which the log of the controller says more`
  return error instanceof Error ? error.message : String(error)
}
