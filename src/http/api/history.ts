/** The endpoints of a check's history: its pings and its flips, newest first. */

import {
  BODY_CUT,
  type BodyForm,
  type FlipRecord,
  listFlips as findFlips,
  getPing as findPing,
  listPings as findPings,
  type PingRecord,
} from '../../checks/find-history.ts'
import { inPieces, type PageRequest } from '../../domain/page.ts'
import { CheckParams } from './checks.schema.ts'
import { FlipList, FlipListQuery, Ping, PingList, PingListQuery, PingParams } from './history.schema.ts'
import { given, readEntries, toIso, toPageRequest } from './present.ts'
import { endpoint, PlainText, Text } from './route.ts'

export const listPings = endpoint({
  id: 'listPings',
  summary: 'List the pings of a check, newest first',
  params: CheckParams,
  query: PingListQuery,
  status: 200,
  response: PingList,
  async handle({ context, caller, params, query }) {
    const { type, since, until, body } = query
    const filter = { body, ...given({ type, since, until }) }
    const read = (piece: PageRequest) => findPings(context, caller, params.id, filter, piece)
    const present = (ping: PingRecord) => presentPing(ping, body)
    const { entries, next_cursor } = await readEntries('pings', inPieces(toPageRequest(query), read), present)
    return { pings: entries, next_cursor }
  },
})

export const getPing = endpoint({
  id: 'getPing',
  summary: 'Get a ping of a check',
  params: PingParams,
  status: 200,
  response: Ping,
  handle: async ({ context, caller, params }) =>
    presentPing(await findPing(context, caller, params.id, params.ping_id), 'full'),
})

export const getPingBody = endpoint({
  id: 'getPingBody',
  summary: 'Get the text of a ping, with the bytes as they were sent',
  params: PingParams,
  status: 200,
  response: PlainText,
  async handle({ context, caller, params }) {
    const { body } = await findPing(context, caller, params.id, params.ping_id)
    return body === null ? null : new Text(body)
  },
})

export const listFlips = endpoint({
  id: 'listFlips',
  summary: 'List the changes of status of a check, newest first',
  params: CheckParams,
  query: FlipListQuery,
  status: 200,
  response: FlipList,
  async handle({ context, caller, params, query }) {
    const { since, until } = query
    const read = (piece: PageRequest) => findFlips(context, caller, params.id, piece, given({ since, until }))
    const { entries, next_cursor } = await readEntries('flips', inPieces(toPageRequest(query), read), presentFlip)
    return { flips: entries, next_cursor }
  },
})

function presentPing(ping: PingRecord, form: BodyForm) {
  return {
    id: ping.id,
    type: ping.type,
    exit_code: ping.exitCode,
    created_at: toIso(ping.createdAt),
    duration_ms: ping.durationMs,
    run_id: ping.runId,
    body: ping.body === null ? null : presentBody(ping.body, form),
    body_truncated: ping.isBodyTruncated,
    source: ping.source,
  }
}

/** What was cut in the middle of a character lies behind the characters that are shown. */
function presentBody(body: Buffer, form: BodyForm): string {
  const text = body.toString('utf8')
  return form === 'cut' ? Array.from(text).slice(0, BODY_CUT).join('') : text
}

function presentFlip({ id, at, from, to, reason, pingId, detail = null }: FlipRecord) {
  return { id, at: toIso(at), from, to, reason, ping_id: pingId, detail }
}
