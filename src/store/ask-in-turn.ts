/**
 * Asks the database for many requests at once. One statement is in flight at a time and the next one takes all that wait, so that a flood of
 * requests needs one connection. Each is asked after it came: its response is as new as a statement of its own would have made it.
 */

import { AppError, unavailable } from '../domain/errors.ts'

const MAX_WAITING = 10_000
const MAX_AT_ONCE = 500

/**
 * `find`: the responses to up to 500 questions, in their order. What it throws is thrown to each of them; AppError `unavailable` also to those that
 * wait then, which would wait as long for the same, and to those that find 10,000 waiting.
 */
export function createAskInTurn<Question, Answer>(
  find: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): (question: Question) => Promise<Answer> {
  let waiting: { question: Question; resolve: (answer: Answer) => void; reject: (error: unknown) => void }[] = []
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_AT_ONCE)
      waiting = waiting.slice(MAX_AT_ONCE)
      try {
        const found = await find(batch.map(({ question }) => question))
        for (const [place, { resolve }] of batch.entries()) resolve(found[place]!)
      } catch (error) {
        const isAway = error instanceof AppError && error.code === 'unavailable'
        for (const { reject } of isAway ? [...batch, ...waiting] : batch) reject(error)
        if (isAway) waiting = []
      }
    }
    isRunning = false
  }

  return (question) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= MAX_WAITING) return reject(unavailable())
      waiting.push({ question, resolve, reject })
      if (!isRunning) void run()
    })
}

/**
 * The same for keys, each of which a statement names once. `find` leaves out unknown keys, and the response to an
 * unknown key is null.
 */
export function createFindInTurn<Found>(
  find: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
): (key: string) => Promise<Found | null> {
  return createAskInTurn(async (keys) => {
    const found = await find([...new Set(keys)])
    return keys.map((key) => found.get(key) ?? null)
  })
}
