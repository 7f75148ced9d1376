/**
 * The places and turns of lists: few are read at the same time, and few are held in memory until their clients have
 * them. An organization has a part of both, so that it delays no list of another one.
 */

import type { ServerResponse } from 'node:http'
import { AppError } from '../../domain/errors.ts'
import { startTimer } from '../../runtime/clock.ts'
import { createLimiter } from '../../runtime/limiter.ts'
import { LIST_MS, LIST_READS, LISTS, RETRY_SECONDS, TURN_MS } from '../limits.ts'

export type Lists = ReturnType<typeof createLists>

export function createLists({ waitMs = TURN_MS, listMs = LIST_MS } = {}) {
  const places = createLimiter({ ...LISTS, waitMs, createError })
  const turns = createLimiter({ ...LIST_READS, waitMs, createError })

  function isSent(response: ServerResponse, mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      // Node closes no response that waits behind another one of its connection: then the timer gives the place back.
      const end = () => {
        stopTimer()
        resolve()
      }
      const stopTimer = startTimer(mostMs, () => {
        response.destroy()
        end()
      })
      if (response.destroyed) end()
      else response.once('close', end)
    })
  }

  return {
    /**
     * Takes a place until `response` is sent. A client that needs longer than `mostMs` is disconnected. Throws AppError
     * `unavailable` when no place became free in time.
     */
    hold: (response: ServerResponse, organizationId: string, mostMs = listMs): Promise<void> =>
      new Promise((resolve, reject) => {
        const work = () => {
          resolve()
          return isSent(response, mostMs)
        }
        places(work, [organizationId]).catch(reject)
      }),
    /**
     * Runs `read` in the turn of the organization. Throws AppError `unavailable` when the turn did not come in time.
     */
    inTurn: <Result>(organizationId: string, read: () => Promise<Result>) => turns(read, [organizationId]),
  }
}

function createError(): AppError {
  const message = `too many lists are being read at the moment; try again in ${RETRY_SECONDS} s`
  return new AppError('unavailable', message, { retryAfterSeconds: RETRY_SECONDS })
}
