/** The calls of healthchecks' API that read the pings and the flips of a check. */

import { type FlipRecord, listFlips as findFlips, type HistoryFilter } from '../../checks/find-history.ts'
import { getNumberedPing, listNumberedPings } from '../../checks/number-pings.ts'
import { AppError, notFound } from '../../domain/errors.ts'
import { inPieces } from '../../domain/page.ts'
import type { Call, Reply } from './call.ts'
import { findCheck } from './checks.ts'
import { isShown, presentFlip, presentPing } from './present.ts'
import { writeList } from './send-list.ts'

export async function listPings(call: Call): Promise<Reply> {
  const { context, caller } = call
  const { id, publicId } = await findCheck(call)
  const pieces = listNumberedPings(context, caller, id)
  return { list: writeList('pings', pieces, (ping) => presentPing(ping, publicId, call)) }
}

export async function getPingBody(call: Call): Promise<Reply> {
  const { id } = await findCheck(call)
  const { body } = await getNumberedPing(call.context, call.caller, id, Number(call.params.n))
  if (body === null || body.length === 0) throw notFound('body')
  return { status: 200, text: body }
}

/** More than a check keeps by default. */
const MAX_FLIPS = 10_000

export async function listFlips(call: Call): Promise<Reply> {
  const { context, caller } = call
  const filter = readRange(call.query, context.clock.now())
  const { id } = await findCheck(call)
  async function* shown() {
    const pieces = inPieces({ limit: MAX_FLIPS, after: null }, (piece) => findFlips(context, caller, id, piece, filter))
    let newer: FlipRecord | undefined
    for await (const { rows } of pieces) {
      yield rows.filter((flip, place) => isShown(flip, place === 0 ? newer : rows[place - 1]))
      newer = rows.at(-1)
    }
  }
  return { list: writeList('flips', shown(), presentFlip) }
}

/** Healthchecks' bounds, in seconds: the year 2286, and 365 days. */
const MAX_TIMESTAMP = 10_000_000_000
const MAX_SECONDS = 31_536_000

function readRange(query: URLSearchParams, now: number): HistoryFilter {
  const start = readInteger(query.get('start'), 'start', MAX_TIMESTAMP)
  const end = readInteger(query.get('end'), 'end', MAX_TIMESTAMP)
  // Empty and 0 are no limit.
  const seconds = readInteger(query.get('seconds') || null, 'seconds', MAX_SECONDS) || null
  const sinces = [start === null ? [] : start * 1_000, seconds === null ? [] : now - seconds * 1_000].flat()
  return {
    ...(sinces.length === 0 ? {} : { since: Math.max(...sinces) }),
    ...(end === null ? {} : { until: end * 1_000 }),
  }
}

function readInteger(text: string | null, name: string, max: number): number | null {
  if (text === null) return null
  const value = /^\s*[+-]?\d{1,20}\s*$/.test(text) ? Number(text) : Number.NaN
  if (value >= 0 && value <= max) return value
  throw new AppError('invalid_request', `${name} must be an integer from 0 to ${max}`)
}
