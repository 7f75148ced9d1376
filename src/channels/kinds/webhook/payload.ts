/** The body of a webhook (design, section 3.5). Its JSON Schema is in http/api/event.schema.ts. */

import type { Event, EventCheck, NotifiedCheck } from '../../../domain/event.ts'
import { toIso } from '../../../domain/instant.ts'
import { sortLabels } from '../../../domain/labels.ts'
import { type Links, linkToAcknowledge } from '../kind.ts'

/** Changes when a field changes its meaning or is removed. A new field does not change it. */
const VERSION = 1

const TEST_MESSAGE =
  'This is a test from Heartbeat Operator. The channel works: what happens to checks will arrive like this.'

/** The same event gives the same bytes: fields in this order, and `timestamp` is the time of the event, not of the attempt. */
export function renderPayload(event: Event, links: Links): string {
  return JSON.stringify({
    version: VERSION,
    id: event.id,
    type: event.type,
    timestamp: toIso(event.at),
    data: event.type === 'channel.test' ? { message: TEST_MESSAGE } : presentCheckEvent(event, links),
  })
}

/** What is undefined has no field. */
function presentCheckEvent(event: NotifiedCheck, links: Links) {
  const { facts, check, lastPing } = event
  const { id, name, slug, tags, labels, project, kubernetes } = check
  const { gap } = facts
  const link = links.check(id)
  return {
    reason: facts.reason,
    occurred_at: facts.occurred_at,
    detected_at: facts.detected_at,
    status: facts.status,
    previous_status: facts.previous_status,
    down_for_seconds: facts.down_for_seconds,
    flips: facts.flips,
    reminder: facts.reminder,
    escalated: facts.escalated,
    silenced_from: facts.silenced_from,
    gap: gap && { started_at: gap.started_at, ended_at: gap.ended_at },
    detail: facts.detail ?? null,
    check: {
      id,
      name,
      slug,
      tags,
      labels: sortLabels(labels),
      project: { id: project.id, slug: project.slug },
      kubernetes: kubernetes && presentResource(kubernetes),
    },
    last_ping: lastPing && {
      type: lastPing.type,
      exit_code: lastPing.exit_code,
      duration_ms: lastPing.duration_ms,
      created_at: lastPing.created_at,
      body: lastPing.body,
    },
    links: {
      check: link,
      pings: `${link}/pings`,
      flips: `${link}/flips`,
      dashboard: links.dashboard(id) ?? undefined,
      acknowledge: linkToAcknowledge(links, event) ?? undefined,
    },
  }
}

function presentResource({ cluster, namespace, name, source, run }: NonNullable<EventCheck['kubernetes']>) {
  return { cluster, namespace, name, source: source && { kind: source.kind, name: source.name }, run }
}
