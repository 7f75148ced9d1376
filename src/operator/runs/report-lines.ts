/**
 * Keeps the order in which a source reports: while one of its failures waits for its explanation, what it reports later waits behind it. A failure
 * that is stored after a later success alarms about nothing.
 */

export interface ReportLines {
  /** Passes a report of the source on: at once, or behind what waits. */
  pass(source: string, send: () => void): void
  /** Keeps a place for a report of the source that is not known yet. Returns a function that fills it, once. */
  reserve(source: string): (send: () => void) => void
}

interface Place {
  /** Null: not known yet. */
  send: (() => void) | null
}

/** Behind so many, the order matters less than the memory. */
const MAX_PLACES = 1_000

export function createReportLines(): ReportLines {
  /** By the key of the source; never empty. */
  const lines = new Map<string, Place[]>()

  function sendFirst(source: string, line: Place[]): void {
    const unknown = line.findIndex(({ send }) => send === null)
    for (const { send } of line.splice(0, unknown === -1 ? line.length : unknown)) send!()
    if (line.length === 0) lines.delete(source)
  }

  return {
    pass(source, send) {
      const line = lines.get(source)
      if (line === undefined || line.length >= MAX_PLACES) send()
      else line.push({ send })
    },
    reserve(source) {
      const place: Place = { send: null }
      const line = lines.get(source) ?? []
      line.push(place)
      lines.set(source, line)
      return (send) => {
        place.send = send
        sendFirst(source, line)
      }
    },
  }
}
