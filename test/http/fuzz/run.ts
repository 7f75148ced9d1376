/** Sends random requests on sockets and checks each response. A failure names the seed that repeats it. */

import { type Answer, openConnection, readAnswer } from '../../support/http.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { settle } from '../../support/until.ts'

export interface MadeRequest {
  readonly bytes: Buffer
  /** The method of the first request: a response to HEAD has no body. */
  readonly method: string
  /**
   * answer: the request is complete, so a response must come although the connection stays open;
   * end: we close our sending side and read what comes; leave: we close the connection before a response comes.
   */
  readonly ending: 'answer' | 'end' | 'leave'
}

export interface FuzzOptions {
  readonly url: string
  readonly seed: number
  readonly requests: number
  readonly make: (random: Random) => MadeRequest
  /** Throws when a response is not valid for any request. */
  readonly judge: (answer: Answer, method: string) => void
}

const CONCURRENCY = 16
/** A slow machine sends fewer requests. */
const LONGEST_RUN_MS = 20_000
const PATIENCE_MS = 15_000
const SHOWN_BYTES = 3_000

/** Returns how often each status came. */
export async function fuzz({ url, seed, requests, make, judge }: FuzzOptions): Promise<Map<number, number>> {
  console.log(`FUZZ_SEED=${seed}`)
  const statuses = new Map<number, number>()
  const giveUpAt = performance.now() + LONGEST_RUN_MS
  let next = 0

  async function work(): Promise<void> {
    while (next < requests && performance.now() < giveUpAt) {
      const index = next
      next += 1
      // Each request has a seed of its own, so that it does not depend on how long the ones before took.
      const random = createRandom(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b))
      const made = make(random)
      try {
        for (const answer of await send(url, made, random)) {
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
          judge(answer, made.method)
        }
      } catch (error) {
        const shown = JSON.stringify(made.bytes.toString('latin1', 0, SHOWN_BYTES))
        const length = `${made.bytes.length} bytes, then ${made.ending}`
        throw new Error(`FUZZ_SEED=${seed}, request ${index}: ${String(error)}\n${length}: ${shown}`, { cause: error })
      }
    }
  }

  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  return statuses
}

async function send(url: string, { bytes, method, ending }: MadeRequest, random: Random): Promise<Answer[]> {
  const connection = openConnection(url, { allowHalfOpen: ending === 'end' })
  const { socket, ended } = connection
  const cut = random.chance(0.2) ? random.int(0, bytes.length) : bytes.length
  connection.send(bytes.subarray(0, cut))
  if (cut < bytes.length) await settle()
  try {
    if (ending === 'leave') {
      await new Promise<void>((resolve) => socket.write(bytes.subarray(cut), () => resolve()))
      return []
    }
    connection.send(bytes.subarray(cut))
    if (ending === 'answer') {
      for (;;) {
        const answer = await connection.receive(method)
        if (answer.status >= 200) return [answer]
      }
    }
    socket.end()
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error(`the connection stays open for ${PATIENCE_MS} ms`)), PATIENCE_MS)
    // The server's end ends ours: we have sent our own already.
    const { rest } = await Promise.race([ended, late]).finally(() => clearTimeout(timer))
    return readAll(Buffer.from(rest, 'latin1'), method)
  } finally {
    socket.destroy()
  }
}

function readAll(bytes: Buffer, method: string): Answer[] {
  const answers: Answer[] = []
  let rest = bytes
  while (rest.length > 0) {
    const found = readAnswer(rest, answers.length === 0 ? method : 'GET', true)
    // The server may have closed the connection; the responses before that were checked.
    if (found === null) return answers
    if (found.answer.status >= 200) answers.push(found.answer)
    rest = rest.subarray(found.length)
  }
  return answers
}
