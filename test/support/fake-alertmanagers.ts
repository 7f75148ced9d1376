/**
 * Alertmanagers as far as our sender meets them: each host keeps what it got last by the rules of the real one (its types.go,
 * `Alert.Merge`, and mem.go, `Put`), and answers as the test says. The real one is in test/prometheus/alertmanager.test.ts.
 */

import type { PostableAlert } from '../../src/channels/kinds/alertmanager/alert.ts'
import type { HttpClient, HttpRequest, HttpResponse } from '../../src/delivery/http.ts'

/** A status, `refuse` (no listener), or `hang` (no response until the caller gives up). */
export type PeerAnswer = number | 'refuse' | 'hang'

export interface Post {
  readonly host: string
  readonly path: string
  readonly isTrusted: boolean
  readonly alerts: readonly PostableAlert[]
}

export interface FakeAlertmanagers extends HttpClient {
  /** As they came, also those that were not taken. */
  readonly posts: Post[]
  answer(host: string, how: PeerAnswer): void
  /** The next post to the host is held, before it counts, until the returned function is called. */
  hold(host: string): { arrived: Promise<Post>; release(): void }
  /** The label `check` of what fires there. */
  firing(host: string): string[]
}

interface Believed {
  readonly startsAt: number
  readonly endsAt: number
}

export function createFakeAlertmanagers(now: () => number): FakeAlertmanagers {
  const posts: Post[] = []
  const answers = new Map<string, PeerAnswer>()
  const holds = new Map<string, (post: Post) => Promise<void>>()
  const memories = new Map<string, Map<string, Believed>>()

  function believe(host: string, { labels, startsAt, endsAt }: PostableAlert): void {
    const memory = memories.get(host) ?? new Map<string, Believed>()
    memories.set(host, memory)
    const name = JSON.stringify(Object.entries(labels).sort())
    const posted = { startsAt: Date.parse(startsAt), endsAt: Date.parse(endsAt) }
    const old = memory.get(name)
    const overlaps =
      old !== undefined &&
      ((posted.endsAt > old.startsAt && posted.endsAt < old.endsAt) ||
        (posted.startsAt > old.startsAt && posted.startsAt < old.endsAt))
    // An end in the future does not end an alert: the later end counts.
    if (overlaps && posted.endsAt > now()) memory.set(name, { ...posted, endsAt: Math.max(posted.endsAt, old.endsAt) })
    else memory.set(name, posted)
  }

  return {
    posts,
    answer: (host, how) => void answers.set(host, how),
    hold(host) {
      const arrival = Promise.withResolvers<Post>()
      const permission = Promise.withResolvers<void>()
      holds.set(host, (post) => {
        holds.delete(host)
        arrival.resolve(post)
        return permission.promise
      })
      return { arrived: arrival.promise, release: permission.resolve }
    },
    firing: (host) =>
      [...(memories.get(host) ?? [])]
        .filter(([, { endsAt }]) => endsAt > now())
        .map(([name]) => (Object.fromEntries(JSON.parse(name)) as { check: string }).check)
        .sort(),

    async send({ method, url, headers, body, isTrusted }: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
      const { host, pathname } = new URL(url)
      if (method !== 'POST' || headers?.['content-type'] !== 'application/json')
        throw new Error('an Alertmanager takes JSON by POST')
      const post: Post = { host, path: pathname, isTrusted, alerts: JSON.parse(body ?? '') }
      posts.push(post)
      await holds.get(host)?.(post)
      const how = answers.get(host) ?? 200
      if (how === 'refuse') throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
      if (how === 'hang') {
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw signal.reason
      }
      if (how === 200) for (const alert of post.alerts) believe(host, alert)
      return { status: how, headers: {}, text: how === 200 ? '' : '"no"' }
    },
    close: async () => {},
  }
}
