/**
 * Lets one caller through in each turn of the event loop, in order of arrival: work that arrives together is done in
 * pieces, and other work, such as pings, comes between two of them.
 */
export function createPacer(): () => Promise<void> {
  const waiting: (() => void)[] = []
  let isRunning = false

  function letNext(): void {
    const go = waiting.shift()
    isRunning = go !== undefined
    if (go === undefined) return
    go()
    setImmediate(letNext)
  }

  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (isRunning) return
      isRunning = true
      setImmediate(letNext)
    })
}
