/** Stores pings on disk that the database does not store now. */

import { startTimer } from '../../runtime/clock.ts'
import type { Ping, PingResult } from './ping.ts'
import type { PingSpool } from './ping-spool.ts'

/** `pingId` as in SpooledPing. */
export interface Spared {
  readonly ping: Ping
  readonly pingId?: Buffer | null
  readonly settle: (result: PingResult) => void
}

/** A disk that has not stored a ping by then hangs. The client hears 503, although it may be stored later. */
const MAX_STORE_MS = 2_500

/** One append is stored as a whole, in one file of 4 MiB: with bodies of 10 KB a queue does not fit. Those of one turn share an fsync anyway. */
const MAX_SPARED = 100

/** Each `spooled`, or with others to `onFailed`. */
export function storeOnDisk<Entry extends Spared>(
  disk: Pick<PingSpool, 'append'>,
  pings: readonly Entry[],
  onFailed: (pings: readonly Entry[], error: unknown) => void,
): void {
  for (let at = 0; at < pings.length; at += MAX_SPARED) store(disk, pings.slice(at, at + MAX_SPARED), onFailed)
}

function store<Entry extends Spared>(
  disk: Pick<PingSpool, 'append'>,
  pings: readonly Entry[],
  onFailed: (pings: readonly Entry[], error: unknown) => void,
): void {
  const onHung = () => onFailed(pings, new Error('the disk of the spool does not respond'))
  const stopTimer = startTimer(MAX_STORE_MS, onHung)
  disk
    .append(pings.map(({ ping, pingId = null }) => ({ ping, pingId })))
    .then(
      () => {
        for (const { settle } of pings) settle('spooled')
      },
      (error) => onFailed(pings, error),
    )
    .finally(stopTimer)
}
