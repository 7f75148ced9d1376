/** The product's turns of pages, of which a test holds those that have come. */

import { createTurns, type Turns } from '../../../src/http/dashboard/turns.ts'

export function createHeldTurns(waitMs?: number) {
  const inner = createTurns(waitMs)
  const reading: (() => void)[] = []
  let isHeld = false
  const whenLet = () => (isHeld ? new Promise<void>((resolve) => void reading.push(resolve)) : Promise.resolve())
  const turns: Turns = {
    ...inner,
    read: (caller, read) => inner.read(caller, () => whenLet().then(read)),
    open: (address, read) => inner.open(address, () => whenLet().then(read)),
  }
  return {
    turns,
    /** How many have their turn, and are held. */
    held: () => reading.length,
    hold() {
      isHeld = true
    },
    release() {
      isHeld = false
      for (const go of reading.splice(0)) go()
    },
  }
}
