/** A story in tests: one step after the other, each with its time. */

import { it } from 'vitest'

export interface Story {
  /** A test that needs all those before it. `onFailure`, of the first that fails, says where there is more to read. */
  step(title: string, run: () => Promise<void>): void
  /** Prints a line. */
  print(line: string): void
}

export function openStory(onFailure: () => Promise<string>): Story {
  const startedAt = performance.now()
  let failed: string | null = null
  const print = (line: string) => void process.stdout.write(`${line}\n`)
  return {
    print,
    step(title, run) {
      it(title, async () => {
        if (failed !== null) throw new Error(`not reached: "${failed}" failed`)
        const from = performance.now()
        try {
          await run()
        } catch (error) {
          failed = title
          const more = await onFailure().catch((fault) => `and nothing could be kept: ${fault}`)
          print(`FAILED: ${title}; ${more}`)
          throw error
        }
        const now = performance.now()
        const [whole, took] = [now - startedAt, now - from].map((ms) => `${(ms / 1_000).toFixed(1)} s`)
        print(`${whole!.padStart(8)}  ${took!.padStart(7)}  ${title}`)
      })
    },
  }
}
