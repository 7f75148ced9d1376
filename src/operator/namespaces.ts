/** Which projects a namespace may use: the annotation on the Namespace, out of its tenants' reach (design, section 6, "Projects"). */

import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { KubernetesObject } from '../kubernetes/objects.ts'
import type { Clock } from '../runtime/clock.ts'
import { PROJECTS_ANNOTATION } from './heartbeat-check.ts'

export interface Namespaces {
  /**
   * The slugs that the annotation lists; null without one, and where we have no right to read it. `fresh`: for what waits
   * for a change of it.
   */
  allowedProjects(namespace: string, age: keyof typeof MEMORY_MS): Promise<readonly string[] | null>
}

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces' }
/** A namespace with a thousand checks is asked for once in a while, not a thousand times. */
const MEMORY_MS = { remembered: 30_000, fresh: 1_000 } as const
/** Namespaces come and go, as with preview environments, and a term lasts for months. */
const MOST_REMEMBERED = 1_000

export function createNamespaces(client: Pick<KubernetesClient, 'get'>, clock: Pick<Clock, 'now'>): Namespaces {
  const known = new Map<string, { at: number; projects: Promise<readonly string[] | null> }>()

  /** A right that was there and is gone is one that is being replaced: nobody's checks move to another project over that. */
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
      if (last !== undefined && now - last.at < MEMORY_MS[age]) return last.projects
      const projects = read(namespace)
      known.delete(namespace)
      known.set(namespace, { at: now, projects })
      if (known.size > MOST_REMEMBERED) known.delete(known.keys().next().value!)
      // An answer that failed is no answer to remember.
      projects.catch(() => known.delete(namespace))
      return projects
    },
  }
}
