/** The alert of a check that is down, as an Alertmanager takes it: labels (its identity), annotations (its text), start and end. */

import type { Instant } from '../../../domain/check.ts'
import type { ChannelTested, EventFacts, NotifiedCheck } from '../../../domain/event.ts'
import { toIso } from '../../../domain/instant.ts'
import { type Labels, toPrometheusName } from '../../../domain/labels.ts'
import { cleanOutput } from '../../../domain/plain-text.ts'
import type { CheckNames, StoredAlert } from '../../../store/outbox/alerts.ts'
import { disarmForChats } from '../disarm.ts'
import { describeEvent } from '../event-text.ts'
import { OUR_LABELS } from './config.ts'

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
/** What the Alertmanager gets of it. */
type PostedAlert = Omit<NewAlert, 'checkLabels'>

/** @param own the labels of the channel; they override ours */
export function buildAlert(event: NotifiedCheck, own: Labels): NewAlert {
  const { check, facts } = event
  const { headline, reason, facts: known, description, output } = describeEvent(event)
  const texts = {
    summary: headline,
    description: reason,
    ...(known.length === 0 ? {} : { details: known.join('\n') }),
    ...(output === null ? {} : { body: output.text }),
    ...(description === null ? {} : { about: description }),
  }
  const { labels: checkLabels = {} } = check
  return {
    labels: labelAlert({ ...check, project: check.project.slug }, facts.reason, checkLabels, own),
    checkLabels,
    annotations: harmless(texts),
    startsAt: Date.parse(facts.occurred_at),
  }
}

/** With a zero-width space in what a chat would take for a control sequence: jobs and names are untrusted. */
function harmless(annotations: Labels): Labels {
  const entries = Object.entries(annotations)
  return Object.fromEntries(entries.map(([name, text]) => [name, disarmForChats(text)]))
}

/**
 * The labels of a check under names that every Alertmanager accepts: `app.kubernetes.io/part-of` is `app_kubernetes_io_part_of`. A name that is one
 * of ours, or begins with a digit, gets a prefix. Where two get the same name, the label that has it as it is comes first, then the first by name.
 */
function toAlertLabels(labels: Labels): Labels {
  const names = Object.keys(labels).sort()
  const isOwn = (name: string) => toAlertLabel(name) === name
  const named: Record<string, string> = {}
  for (const name of [...names.filter(isOwn), ...names.filter((name) => !isOwn(name))]) {
    const label = toAlertLabel(name)
    // An Alertmanager drops a label without a value, so it replaces none.
    if (labels[name] !== '' && !Object.hasOwn(named, label)) named[label] = labels[name]!
  }
  return named
}

function toAlertLabel(name: string): string {
  const label = toPrometheusName(name)
  return OUR_LABELS.includes(label) || /^\d/.test(label) ? `label_${label}` : label
}

/** An Alertmanager identifies an alert by all of its labels. */
export function labelAlert(
  { slug, project, kubernetes }: Pick<CheckNames, 'slug' | 'project' | 'kubernetes'>,
  reason: EventFacts['reason'],
  checkLabels: Labels,
  own: Labels,
): Labels {
  return {
    alertname: 'HeartbeatCheckDown',
    ...(kubernetes === null ? {} : { namespace: kubernetes.namespace }),
    check: kubernetes?.name ?? slug,
    project,
    reason,
    severity: 'critical',
    ...toAlertLabels(checkLabels),
    ...own,
  }
}

/** The labels of a stored alert under the present names of its check, with the labels that the check had. */
export function relabelAlert({ labels, checkLabels }: StoredAlert, check: CheckNames, own: Labels): Labels {
  return labelAlert(check, labels.reason as EventFacts['reason'], checkLabels, own)
}

/**
 * The annotations of an alert that fires, with the text of the newest failing ping: a job that is tried again brings
 * another one, and no event.
 */
export function reannotateAlert({ annotations }: StoredAlert, newestText: string | null): Labels {
  const body = newestText === null ? '' : cleanOutput(newestText)
  return body === '' ? annotations : { ...annotations, ...harmless({ body }) }
}

export function fire(alert: PostedAlert, now: Instant, link: string | null): PostableAlert {
  return render(alert, now + ALERT_LIFE_MS, link)
}

/**
 * The alert with its end at `at` or a little earlier, never before its start (it would be rejected): a receiver whose clock is behind would see
 * an end in the future, and keep the later end that it has (`Alert.Merge` in its source).
 */
export function resolve(alert: PostedAlert, at: Instant, link: string | null): PostableAlert {
  return render(alert, Math.max(at - CLOCK_SKEW_MS, alert.startsAt), link)
}

/** It is routed like the channel's alerts and ends by itself. */
export function buildTestAlert(event: ChannelTested, own: Labels, now: Instant): PostableAlert {
  const { headline, reason } = describeEvent(event)
  const labels = { alertname: 'HeartbeatTest', severity: 'info', ...own }
  const annotations = harmless({ summary: headline, description: reason })
  return render({ labels, annotations, startsAt: Math.min(event.at, now) }, now + TEST_LIFE_MS, null)
}

function render({ labels, annotations, startsAt }: PostedAlert, endsAt: Instant, link: string | null): PostableAlert {
  const times = { startsAt: toIso(startsAt), endsAt: toIso(endsAt) }
  return { labels, annotations, ...times, ...(link === null ? {} : { generatorURL: link }) }
}
