/** A check that is down, in the words of an Alertmanager: which alert it is (labels), what it says, and from when to when. */

import type { Instant } from '../domain/check.ts'
import type { ChannelTested, CheckTold, EventFacts } from '../domain/event.ts'
import { toIso } from '../domain/instant.ts'
import type { CheckNames, Labels, StoredAlert } from '../store/outbox/alerts.ts'
import { explain, findOutput, headline } from './words.ts'

/** As `POST /api/v2/alerts` takes them, in an array. */
export interface PostableAlert {
  readonly labels: Labels
  readonly annotations: Labels
  readonly startsAt: string
  /** In the future: it fires until then, unless it is posted again. */
  readonly endsAt: string
  readonly generatorURL?: string
}

/** How long an Alertmanager believes us after we are gone. */
export const ALERT_LIFE_MS = 15 * 60_000
/** How far apart clocks usually are at most. */
export const CLOCKS_APART_MS = 2_000
const TEST_LIFE_MS = 60_000

export function buildAlert(event: CheckTold, own: Labels): Pick<StoredAlert, 'labels' | 'annotations' | 'startsAt'> {
  const { check, facts } = event
  const body = findOutput(event)?.text
  return {
    labels: labelAlert({ ...check, project: check.project.slug }, facts.reason, own),
    annotations: { summary: headline(event), description: explain(event), ...(body === undefined ? {} : { body }) },
    startsAt: Date.parse(facts.occurred_at),
  }
}

/** An Alertmanager tells alerts apart by all of their labels. `own`: the channel's, which win. */
export function labelAlert(
  { slug, project, kubernetes }: Pick<CheckNames, 'slug' | 'project' | 'kubernetes'>,
  reason: EventFacts['reason'],
  own: Labels,
): Labels {
  return {
    alertname: 'HeartbeatCheckDown',
    ...(kubernetes === null ? {} : { namespace: kubernetes.namespace }),
    check: kubernetes?.name ?? slug,
    project,
    reason,
    severity: 'critical',
    ...own,
  }
}

/** The labels that a stored alert would have if its check had always been called so. */
export function relabelAlert({ labels }: StoredAlert, check: CheckNames, own: Labels): Labels {
  const renamed = labelAlert(check, labels.reason as EventFacts['reason'], own)
  return areSame(labels, renamed) ? labels : renamed
}

export function areSame(one: Labels, other: Labels): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}

export function fire(alert: Omit<StoredAlert, 'resolvedAt'>, now: Instant, link: string | null): PostableAlert {
  return render(alert, now + ALERT_LIFE_MS, link)
}

/**
 * Ended `at`, and a little before that: an end that is still to come by the receiver's clock is none to it, and it goes by the later
 * one that it had (`Alert.Merge` in its source).
 */
export function resolve(alert: Omit<StoredAlert, 'resolvedAt'>, at: Instant, link: string | null): PostableAlert {
  // An end before the start is refused.
  return render(alert, Math.max(at - CLOCKS_APART_MS, alert.startsAt), link)
}

/** It takes the way of the channel's alerts and ends by itself. */
export function buildTestAlert(event: ChannelTested, own: Labels, now: Instant): PostableAlert {
  const labels = { alertname: 'HeartbeatTest', severity: 'info', ...own }
  const annotations = { summary: headline(event), description: explain(event) }
  return render({ labels, annotations, startsAt: Math.min(event.at, now) }, now + TEST_LIFE_MS, null)
}

function render(
  { labels, annotations, startsAt }: Omit<StoredAlert, 'resolvedAt'>,
  endsAt: Instant,
  link: string | null,
): PostableAlert {
  const times = { startsAt: toIso(startsAt), endsAt: toIso(endsAt) }
  return { labels, annotations, ...times, ...(link === null ? {} : { generatorURL: link }) }
}
