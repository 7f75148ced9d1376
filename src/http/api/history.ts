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
import { CheckParams } from './checks.schema.ts'
import { Flip, FlipList, FlipListQuery, Ping, PingList, PingListQuery, PingParams } from './history.schema.ts'
import { readList } from './list-page.ts'
import { given } from './present.ts'
import { endpoint, PlainText, Text } from './route.ts'

export const listPings = endpoint({
  summary: 'List the pings of a check, newest first',
  params: CheckParams,
  query: PingListQuery,
  response: PingList,
  handle({ context, caller, params, query }) {
    const { type, since, until, body } = query
    const filter = { body, ...given({ type, since, until }) }
    const show = (ping: PingRecord) => toShown(ping, body)
    return readList('pings', Ping, query, (piece) => findPings(context, caller, params.id, filter, piece), show)
  },
})

export const getPing = endpoint({
  summary: 'Get a ping of a check',
  params: PingParams,
  response: Ping,
  handle: async ({ context, caller, params }) =>
    toShown(await findPing(context, caller, params.id, params.ping_id), 'full'),
})

export const getPingBody = endpoint({
  summary: 'Get the text of a ping, with the bytes as they were sent',
  params: PingParams,
  response: PlainText,
  async handle({ context, caller, params }) {
    const { body } = await findPing(context, caller, params.id, params.ping_id)
    return body === null ? null : new Text(body)
  },
})

export const listFlips = endpoint({
  summary: 'List the changes of status of a check, newest first',
  params: CheckParams,
  query: FlipListQuery,
  response: FlipList,
  handle({ context, caller, params, query }) {
    const filter = given({ since: query.since, until: query.until })
    return readList('flips', Flip, query, (piece) => findFlips(context, caller, params.id, piece, filter), showFlip)
  },
})

function toShown({ isBodyTruncated: bodyTruncated, ...ping }: PingRecord, form: BodyForm) {
  return { ...ping, bodyTruncated, body: ping.body === null ? null : presentBody(ping.body, form) }
}

/** What was cut in the middle of a character lies behind the characters that are shown. */
function presentBody(body: Buffer, form: BodyForm): string {
  const text = body.toString('utf8')
  return form === 'cut' ? Array.from(text).slice(0, BODY_CUT).join('') : text
}

const showFlip = (flip: FlipRecord) => ({ detail: null, ...flip })
