import type { Agent } from 'node:http'
import { aPing, createAgent, type Outcome, sendPing } from '../support/sent-pings.ts'

/** Pings at a steady pace, whether the ones before were answered or not: so jobs behave, and so nothing hides behind a hang. */
export interface Trickle {
  /** In the order in which they were sent; those that are still unanswered are not in it. */
  readonly outcomes: readonly Outcome[]
  /** Outcomes of pings that were sent at or after `since` (performance.now). */
  since(since: number): Outcome[]
  /** Resolves when all have been answered. */
  stop(): Promise<void>
}

const EVERY_MS = 50

export function startTrickle(base: string, publicIds: readonly string[]): Trickle {
  const agent: Agent = createAgent()
  const outcomes: Outcome[] = []
  const open = new Set<Promise<void>>()
  let count = 0
  const timer = setInterval(() => {
    const publicId = publicIds[count++ % publicIds.length]!
    const sending = sendPing(base, aPing(publicId), agent).then((outcome) => {
      outcomes.push(outcome)
      open.delete(sending)
    })
    open.add(sending)
  }, EVERY_MS)
  return {
    outcomes,
    since: (since) => outcomes.filter(({ sentAt }) => sentAt >= since),
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
      agent.destroy()
    },
  }
}
