/** The disk of the recorder: its spool, as far as the spool takes pings now. */

import { startTimer } from '../../runtime/clock.ts'
import type { Ping, PingResult } from './ping.ts'
import type { PingSpool } from './ping-spool.ts'

export interface RecorderSpool {
  /** Null while it is not open. */
  readonly pings: () => Pick<PingSpool, 'accepts' | 'append' | 'hasRoom' | 'isCaughtUp' | 'noteRefusal'> | null
  /** Whether a check has this public id, as far as is known: invented ids must not fill the spool. */
  readonly isKnown: (publicId: string) => boolean
  /** The database stores no pings, and they are spooled from now on. */
  readonly onBegin: (error: unknown) => void
}

export interface Unstored {
  readonly ping: Ping
  /** As in SpooledPing. */
  readonly pingId: Buffer | null
  readonly settle: (result: PingResult) => void
}

/** A disk that has not stored a ping by then hangs. The client hears 503, although it may be stored later. */
const MAX_APPEND_MS = 2_500
/** One append is stored as a whole, in one file of 4 MiB. Those of one turn share an fsync anyway. */
const MAX_APPENDED = 100

/** `onFailed`: the disk has not stored these pings. */
export function createDisk(
  spool: RecorderSpool | null,
  onFailed: (pings: readonly Unstored[], error: unknown) => void,
) {
  const open = () => spool?.pings() ?? null
  /** Appends that the disk has not answered in time: it is the same as none until it does. */
  let hanging = 0

  function appendTogether(pings: readonly Unstored[]): void {
    let isLate = false
    const stopTimer = startTimer(MAX_APPEND_MS, () => {
      isLate = true
      hanging += 1
      onFailed(pings, new Error('the disk of the spool does not respond'))
    })
    const onStored = () => {
      for (const { settle } of pings) settle('spooled')
    }
    void open()!
      .append(pings)
      .then(onStored, (error) => {
        if (!isLate) onFailed(pings, error)
      })
      .finally(() => {
        stopTimer()
        if (isLate) hanging -= 1
      })
  }

  return {
    isOpen: () => open() !== null,
    /** Whether there is room. */
    takes: () => hanging === 0 && (open()?.hasRoom() ?? false),
    /** Also where it is full: whether there is room again only an append can tell. */
    mayTake: () => hanging === 0 && (open()?.accepts() ?? false),
    /** Whether pings wait there to be recorded. */
    isBehind: () => open()?.isCaughtUp() === false,
    isKnown: (publicId: string) => spool?.isKnown(publicId) ?? false,
    onBegin: (error: unknown) => spool?.onBegin(error),
    /** Of an id that is not known nothing says whether it names a check. */
    append(pings: readonly Unstored[]): void {
      const known = pings.filter(({ ping }) => spool!.isKnown(ping.publicId))
      for (const one of pings) if (!spool!.isKnown(one.ping.publicId)) one.settle('unconfirmed')
      for (let at = 0; at < known.length; at += MAX_APPENDED) appendTogether(known.slice(at, at + MAX_APPENDED))
    },
    noteRefusal: () => open()?.noteRefusal(),
  }
}
