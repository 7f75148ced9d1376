/**
 * Which rights this account has in each area, by the API server's own word: a SelfSubjectAccessReview, which every
 * account may create. So a missing right is known before a request fails, and a right that was removed is known
 * although an open watch goes on. Where the API server refuses reviews, rejected requests show what is missing.
 */

import type { KubernetesClient } from './client.ts'
import { hasStatus } from './errors.ts'
import type { ResourceType } from './objects.ts'

export interface Right {
  readonly verb: string
  readonly type: Pick<ResourceType, 'group' | 'plural'>
  readonly subresource?: string
}

/** With its name: `list jobs.batch in the namespace payments`. */
type MissingRight<R> = R & { readonly right: string }

export type Rights<R extends Right> = ReturnType<typeof createRights<R>>

interface RightsOptions<R extends Right> {
  readonly client: Pick<KubernetesClient, 'raw'>
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly needed: readonly R[]
}

const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const REVIEW_MS = 5_000
/** Each right is asked for once in this time, the questions spread over it. */
const ROUND_MS = 60_000
/** Of many namespaces the round takes longer. */
const PAUSE_MS = 100

export function createRights<R extends Right>({ client, namespaces, needed }: RightsOptions<R>) {
  const areas = (namespaces ?? [undefined]).map((namespace) => ({ namespace, missing: new Set<R>() }))
  type Area = (typeof areas)[number]
  const areaOf = (namespace?: string) => areas[namespaces === null ? 0 : namespaces.indexOf(namespace!)]
  const questions = areas.flatMap((area) => needed.map((right) => ({ area, right })))
  const listeners = new Set<(namespace: string | undefined) => void>()
  /** To be asked for as a whole: rights mostly come and go together. */
  const changed = new Set(areas)
  let asked = 0
  let isRefused = false

  function put(area: Area, right: R, isGranted: boolean): void {
    if (area.missing.has(right) !== isGranted) return
    if (isGranted) area.missing.delete(right)
    else area.missing.add(right)
    changed.add(area)
    for (const listener of listeners) listener(area.namespace)
  }

  /** Resolves with whether an answer came. */
  async function review(area: Area, right: R, signal: AbortSignal): Promise<boolean> {
    const { verb, type, subresource } = right
    const { group, plural: resource } = type
    const spec = { resourceAttributes: { namespace: area.namespace, verb, group, resource, subresource } }
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec }
    try {
      const answer = await client.raw('POST', REVIEWS, body, { signal, timeoutMs: REVIEW_MS, keepsOthers: true })
      const { allowed } = (answer as { status?: { allowed?: unknown } }).status ?? {}
      isRefused = false
      if (typeof allowed === 'boolean') put(area, right, allowed)
      return true
    } catch (error) {
      // What fails otherwise shows nothing.
      const isRefusal = hasStatus(error, 403, 404, 405)
      isRefused ||= isRefusal
      return isRefusal
    }
  }

  return {
    /** The wait between two calls of ask(). */
    everyMs: Math.max(ROUND_MS / questions.length, PAUSE_MS),
    /** In the order of `needed`. None while nothing is known. */
    missing(namespace: string): MissingRight<R>[] {
      const area = areaOf(namespace)
      return needed
        .filter((right) => area?.missing.has(right))
        .map((right) => ({ ...right, right: describeRight(right, area?.namespace) }))
    },
    /** A request has shown whether the right is there. `namespace`: undefined for a request in all of them. */
    note(namespace: string | undefined, given: Right, isGranted: boolean): void {
      const area = areaOf(namespace)!
      const right = needed.find((right) => describeRight(right) === describeRight(given))
      if (right === undefined || area.missing.has(right) !== isGranted) return
      if (isRefused) put(area, right, isGranted)
      else changed.add(area)
    },
    /** Asks for one right; for all of an area in which one has changed. Never rejects. */
    async ask(signal: AbortSignal): Promise<void> {
      const [area] = changed
      changed.delete(area!)
      const next = area === undefined ? [questions[asked++ % questions.length]!] : questions
      for (const question of next)
        if (!signal.aborted && (area ?? question.area) === question.area) {
          const isAnswered = await review(question.area, question.right, signal)
          if (!isAnswered && area !== undefined) changed.add(area)
        }
    },
    /** `namespace`: undefined for all of them. Returns a function that ends the calls. */
    onChange(listener: (namespace: string | undefined) => void): () => void {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
  }
}

/** As `list jobs.batch in the namespace payments`. */
export function describeRight({ verb, type, subresource }: Right, namespace?: string): string {
  const resource = type.group === '' ? type.plural : `${type.plural}.${type.group}`
  const part = subresource === undefined ? '' : `/${subresource}`
  return `${verb} ${resource}${part}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`
}
