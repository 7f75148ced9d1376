/** The alert of a check that is down, as an Alertmanager takes it: labels (its identity), annotations (its text), start and end. */

import type { Instant } from '../../../domain/check.ts'
import type { ChannelTested, EventFacts, NotifiedCheck } from '../../../domain/event.ts'
import { toIso } from '../../../domain/instant.ts'
import type { CheckNames, Labels, StoredAlert } from '../../../store/outbox/alerts.ts'
import { describeEvent } from '../event-text.ts'

/** An element of the array that `POST /api/v2/alerts` takes. */
export interface PostableAlert {
  readonly labels: Labels
  readonly annotations: Labels
  readonly startsAt: string
  /** In the future for an alert that fires: it ends then unless it is posted again. */
  readonly endsAt: string
  readonly generatorURL?: string
}

/** How long an alert goes on firing after the last post. */
export const ALERT_LIFE_MS = 15 * 60_000
/** The usual maximum difference between two clocks. */
export const CLOCK_SKEW_MS = 2_000
const TEST_LIFE_MS = 60_000

type NewAlert = Omit<StoredAlert, 'resolvedAt'>

/** @param own the labels of the channel; they override ours */
export function buildAlert(event: NotifiedCheck, own: Labels): NewAlert {
  const { check, facts } = event
  const { headline, reason, output } = describeEvent(event)
  return {
    labels: labelAlert({ ...check, project: check.project.slug }, facts.reason, own),
    annotations: { summary: headline, description: reason, ...(output === null ? {} : { body: output.text }) },
    startsAt: Date.parse(facts.occurred_at),
  }
}

/** An Alertmanager identifies an alert by all of its labels. */
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

/** The labels of a stored alert under the present names of its check. The same object when they are equal. */
export function relabelAlert({ labels }: StoredAlert, check: CheckNames, own: Labels): Labels {
  const renamed = labelAlert(check, labels.reason as EventFacts['reason'], own)
  return areEqual(labels, renamed) ? labels : renamed
}

export function areEqual(one: Labels, other: Labels): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}

export function fire(alert: NewAlert, now: Instant, link: string | null): PostableAlert {
  return render(alert, now + ALERT_LIFE_MS, link)
}

/**
 * The alert with its end at `at` or a little earlier, never before its start (it would be rejected): a receiver whose clock is behind would see
 * an end in the future, and keep the later end that it has (`Alert.Merge` in its source).
 */
export function resolve(alert: NewAlert, at: Instant, link: string | null): PostableAlert {
  return render(alert, Math.max(at - CLOCK_SKEW_MS, alert.startsAt), link)
}

/** It is routed like the channel's alerts and ends by itself. */
export function buildTestAlert(event: ChannelTested, own: Labels, now: Instant): PostableAlert {
  const { headline, reason } = describeEvent(event)
  const labels = { alertname: 'HeartbeatTest', severity: 'info', ...own }
  const annotations = { summary: headline, description: reason }
  return render({ labels, annotations, startsAt: Math.min(event.at, now) }, now + TEST_LIFE_MS, null)
}

function render({ labels, annotations, startsAt }: NewAlert, endsAt: Instant, link: string | null): PostableAlert {
  const times = { startsAt: toIso(startsAt), endsAt: toIso(endsAt) }
  return { labels, annotations, ...times, ...(link === null ? {} : { generatorURL: link }) }
}
