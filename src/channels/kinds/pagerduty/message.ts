/**
 * Events of PagerDuty's Events API v2 (developer.pagerduty.com: "Events API v2 Overview" with PD-CEF, "Send an Alert
 * Event"). Texts are shown as they are; PagerDuty and its kin pass them on to chats, where they must not notify people
 * or look like links.
 */

import type { Event, EventCheck } from '../../../domain/event.ts'
import { toIso } from '../../../domain/instant.ts'
import { cutEnd } from '../cut.ts'
import { disarmForChats } from '../disarm.ts'
import { describeEvent, type EventText, OUTPUT } from '../event-text.ts'
import { type Links, placesOf } from '../kind.ts'
import type { PagerdutySettings } from './config.ts'

/** "Send an Alert Event", Parameters: characters of `payload.summary`, here UTF-16 units, the strictest count. */
export const SUMMARY_LIMIT = 1_024

/** The others are about the incident that `trigger` has opened with the same `dedup_key`. */
export type Action = 'trigger' | 'acknowledge' | 'resolve'

const CLIENT = 'Heartbeat Operator'

/** The same event gives the same bytes. The incident of a check has the id of the check, that of a test its own. */
export function renderEvent(event: Event, action: Action, { routing_key, severity }: PagerdutySettings, links: Links) {
  const words = describeEvent(event)
  const { id, places, payload } =
    event.type === 'channel.test'
      ? {
          id: event.id,
          places: [{ action: 'All checks', url: links.checks() }],
          // It wakes no one where PagerDuty notifies by severity.
          payload: { source: CLIENT, severity: 'info', timestamp: toIso(event.at), custom_details: detail(words) },
        }
      : {
          id: event.check.id,
          places: placesOf(links, event),
          payload: {
            source: locate(event.check),
            severity: severity ?? 'critical',
            timestamp: event.facts.occurred_at,
            component: event.check.slug,
            group: event.check.project.slug,
            class: event.facts.reason,
            custom_details: { ...detail(words), labels: event.check.labels },
          },
        }
  return {
    routing_key,
    event_action: action,
    dedup_key: id,
    client: CLIENT,
    // Behind the button "View in ...".
    client_url: places[0]!.url,
    links: places.map(({ action: text, url: href }) => ({ href, text })),
    payload: { summary: summarize(words), ...payload },
  }
}

/** All that a push message, a short message or a call says. A summary that is too long loses the end of the reason. */
function summarize({ headline, reason }: EventText): string {
  return cutEnd(Array.from(disarmForChats(`${headline}: ${reason}`)), SUMMARY_LIMIT)
}

/** `default/shop/nightly-backup`, without Kubernetes `shop/nightly-backup`. */
function locate({ kubernetes, project, slug }: EventCheck): string {
  if (kubernetes === null) return `${project.slug}/${slug}`
  return `${kubernetes.cluster}/${kubernetes.namespace}/${kubernetes.name}`
}

function detail({ reason, facts, location, output, description }: EventText): Readonly<Record<string, string>> {
  // The name of the detail says as much.
  const title = output === null || output.title === OUTPUT ? '' : `${output.title}:\n`
  const shown = output === null ? null : title + output.text
  const texts = Object.entries({ reason, facts: facts.join('\n'), location, output: shown, description })
  return Object.fromEntries(texts.flatMap(([name, text]) => (text ? [[name, disarmForChats(text)]] : [])))
}
