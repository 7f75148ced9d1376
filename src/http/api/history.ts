/** The endpoints of a check's history: its pings and its flips, newest first. */

import {
  type FlipRecord,
  listFlips as findFlips,
  listPings as findPings,
  type PingRecord,
} from '../../checks/find-checks.ts'
import { CheckParams } from './checks.schema.ts'
import { FlipList, HistoryQuery, PingList } from './history.schema.ts'
import { presentNext, toIso, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listPings = endpoint({
  id: 'listPings',
  summary: 'List the pings of a check, newest first',
  params: CheckParams,
  query: HistoryQuery,
  status: 200,
  response: PingList,
  async handle({ context, caller, params, query }) {
    const page = await findPings(context, caller, params.id, toPageRequest(query))
    return { pings: page.rows.map(presentPing), ...presentNext(page) }
  },
})

export const listFlips = endpoint({
  id: 'listFlips',
  summary: 'List the changes of status of a check, newest first',
  params: CheckParams,
  query: HistoryQuery,
  status: 200,
  response: FlipList,
  async handle({ context, caller, params, query }) {
    const page = await findFlips(context, caller, params.id, toPageRequest(query))
    return { flips: page.rows.map(presentFlip), ...presentNext(page) }
  },
})

function presentPing(ping: PingRecord) {
  return {
    id: ping.id,
    type: ping.type,
    exit_code: ping.exitCode,
    created_at: toIso(ping.createdAt),
    duration_ms: ping.durationMs,
    run_id: ping.runId,
    body: ping.body === null ? null : ping.body.toString('utf8'),
    source: ping.source,
  }
}

function presentFlip({ id, at, from, to, reason, pingId }: FlipRecord) {
  return { id, at: toIso(at), from, to, reason, ping_id: pingId }
}
