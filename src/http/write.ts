/**
 * Writes response bodies no faster than their readers read, and disconnects a client that reads nothing: what is
 * written and not read is held in our memory. A body is written in small pieces, because the end of a write is the only
 * sign of a reader: one that reads little is not mistaken for one that reads nothing.
 */

import type { ServerResponse } from 'node:http'
import { startTimer } from '../runtime/clock.ts'
import { UNREAD_MS } from './limits.ts'

/** The client closed its connection, or was disconnected because it read nothing. */
export class ClientLeft extends Error {
  constructor() {
    super('the client left before it had read the response')
    this.name = 'ClientLeft'
  }
}

export const PIECE_BYTES = 16_384

/** Resolves when the kernel has all of `bytes`. Throws ClientLeft, also when it took nothing for `idleMs`. */
export async function writeBytes(response: ServerResponse, bytes: Uint8Array, idleMs = UNREAD_MS): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    await writePiece(response, bytes.subarray(at, at + PIECE_BYTES), idleMs)
}

function writePiece(response: ServerResponse, piece: Uint8Array, idleMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed) return reject(new ClientLeft())
    const leave = () => settle(new ClientLeft())
    const settle = (error?: Error | null) => {
      stopTimer()
      response.off('close', leave)
      if (error == null) resolve()
      else reject(new ClientLeft())
    }
    const stopTimer = startTimer(idleMs, () => {
      response.destroy()
      leave()
    })
    response.once('close', leave)
    response.write(piece, settle)
  })
}
