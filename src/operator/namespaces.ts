/** Which projects a namespace may use: an annotation on the Namespace, which its tenants cannot edit (design, section 6, "Projects"). */

import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { KubernetesObject } from '../kubernetes/objects.ts'
import type { Clock } from '../runtime/clock.ts'
import { PROJECTS_ANNOTATION } from './heartbeat-check.ts'

export interface Namespaces {
  /**
   * Resolves with the slugs of the annotation; with null without one, and without the right to read it. `fresh`: for a
   * resource that waits for a change of it.
   */
  allowedProjects(namespace: string, age: keyof typeof CACHE_MS): Promise<readonly string[] | null>
}

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces' }
/** A Namespace with a thousand checks is read once in a while, not a thousand times. */
const CACHE_MS = { cached: 30_000, fresh: 1_000 } as const
/** Namespaces come and go, as with preview environments, and a term may last for months. */
const MAX_CACHED = 1_000

export function createNamespaces(client: Pick<KubernetesClient, 'get'>, clock: Pick<Clock, 'now'>): Namespaces {
  const known = new Map<string, { at: number; projects: Promise<readonly string[] | null> }>()

  /** A right that is lost is probably being replaced: no check moves to another project because of that. */
  let hadRight = false

  async function read(namespace: string): Promise<readonly string[] | null> {
    try {
      const { metadata } = await client.get<KubernetesObject>(NAMESPACES, { name: namespace })
      hadRight = true
      const text = metadata.annotations?.[PROJECTS_ANNOTATION]
      if (text === undefined) return null
      return text
        .split(',')
        .map((slug) => slug.trim())
        .filter((slug) => slug !== '')
    } catch (error) {
      if (error instanceof ApiError && (error.status === 404 || (error.status === 403 && !hadRight))) return null
      throw error
    }
  }

  return {
    allowedProjects(namespace, age) {
      const now = clock.now()
      const last = known.get(namespace)
      if (last !== undefined && now - last.at < CACHE_MS[age]) return last.projects
      const projects = read(namespace)
      known.delete(namespace)
      known.set(namespace, { at: now, projects })
      if (known.size > MAX_CACHED) known.delete(known.keys().next().value!)
      // A failure is not cached.
      projects.catch(() => known.delete(namespace))
      return projects
    },
  }
}
