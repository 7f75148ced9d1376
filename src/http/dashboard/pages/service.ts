/** `/service`: whether the service itself is well. For every user: no page shows another organization's data. */

import type { Instant } from '../../../domain/check.ts'
import { findBlind } from '../../../service/find-blind.ts'
import {
  type ClusterHealth,
  findHealth,
  MAX_WAITING,
  type ServiceHealth,
  type ShownGap,
} from '../../../service/find-health.ts'
import { type Html, html, isolated } from '../html.ts'
import { badge } from '../icons.ts'
import { type Page, page, type Request } from '../page.ts'
import { facts, section, table } from '../ui/parts.ts'
import { ago, durationWords, exactWords } from '../words/time-words.ts'
import { blindWords } from './blind.ts'

export const serviceRoutes = [page('/service', 'read', showService)]

const SECOND_MS = 1_000
const DAY_MS = 86_400_000
/** Deadlines are evaluated and deliveries claimed four times a second: a longer delay is a fault. */
const LATE_MS = 60_000
/** Two leaders for a few seconds are a change of the leader. */
const CHANGE_MS = 60_000
/** A cluster that was not seen for so long was taken down. */
const GONE_SECONDS = 86_400

async function showService({ context, caller, now }: Request): Promise<Page> {
  const [health, blind] = await Promise.all([findHealth(context, caller), findBlind(context, caller)])
  const problems = [...findProblems(health, now), ...blind.map((cluster) => blindWords(cluster, now))]
  const main = html`<h1>Service</h1>
${
  problems.length === 0
    ? html`<p class="verdict">${badge('up', 'All is well.')} Pings are stored, deadlines are evaluated, and deliveries are sent.</p>`
    : html`<div class="verdict verdict-bad"><p>${badge('down', 'The service needs attention.')}</p>
<ul>${problems.map((problem) => html`<li>${problem}</li>`)}</ul></div>`
}
${recentGaps(health, now)}
${showFacts(health, now)}
${showReplicas(health, now)}
${health.clusters === null ? '' : showClusters(health.clusters, now)}
${showGaps(health, now)}`
  return { kind: 'page', title: 'Service', main, live: 'list' }
}

/** What is wrong, each with what to do. */
function findProblems({ replicas, clusters, overdueSeconds, waiting, spooled }: ServiceHealth, now: Instant): Html[] {
  const problems: Html[] = []
  for (const { host, role, isLive, seenSecondsAgo } of replicas) {
    const isReplaced = replicas.some((other) => other.isLive && other.host === host && other.role === role)
    if (!isLive && !isReplaced)
      problems.push(
        html`The replica ${isolated(host)} has not reported for ${durationWords(seenSecondsAgo * SECOND_MS)} and did not stop cleanly. If it was not replaced, look at its log.`,
      )
  }
  for (const cluster of clusters ?? []) {
    const problem = problemOf(cluster, now)
    if (problem !== null) problems.push(problem)
  }
  if (overdueSeconds * SECOND_MS > LATE_MS)
    problems.push(
      html`Deadlines are evaluated ${durationWords(overdueSeconds * SECOND_MS)} late: checks go down late. Look at the log of the api replicas and at the load of the database.`,
    )
  if (spooled?.isIgnored)
    problems.push(
      html`Pings wait on the disk of an api replica; the oldest came ${ago(spooled.since, now)}: deadlines do not wait for them any longer, and a check may go down although its job has pinged. If their number, <code>heartbeat_spool_pings</code>, does not fall, look at the log of the api replicas.`,
    )
  if (waiting.dueSince !== null && now - waiting.dueSince > LATE_MS)
    problems.push(
      html`A delivery was due ${ago(waiting.dueSince, now)} and has not been sent. Look at the log of the api replicas, and at <a href="/deliveries?status=pending">the pending deliveries</a>.`,
    )
  return problems
}

/** A restart of a single replica makes a gap, so a gap alone is no problem. */
function recentGaps({ gaps }: ServiceHealth, now: Instant): Html {
  const recent = gaps.filter(({ endedAt }) => now - endedAt < DAY_MS)
  const lost = recent.filter(({ isSpooled }) => isSpooled === false)
  const spooled = recent.filter(({ isSpooled }) => isSpooled !== false)
  const isKnown = spooled.every(({ isSpooled }) => isSpooled)
  return html`${
    lost.length === 0
      ? ''
      : html`<p>Within the last 24 hours no ping could be stored for ${lasted(lost, now)}. Deadlines were moved accordingly.</p>`
  }${
    spooled.length === 0
      ? ''
      : html`<p>Within the last 24 hours the database was unavailable for ${lasted(spooled, now)}. Meanwhile pings were stored on disk, and they ${isKnown ? 'are' : 'are being'} recorded.</p>`
  }`
}

/** `gaps`: the newest one first. */
function lasted(gaps: readonly ShownGap[], now: Instant): Html {
  const ms = gaps.reduce((sum, { startedAt, endedAt }) => sum + endedAt - startedAt, 0)
  return html`${durationWords(ms)}, the last time ${ago(gaps[0]!.endedAt, now)}`
}

function problemOf({ name, leaders, seenSecondsAgo, standbys }: ClusterHealth, now: Instant): Html | null {
  if (leaders.length > 1 && leaders.every(({ since }) => now - since > CHANGE_MS))
    return html`Several controllers lead under the cluster name ${isolated(name)}: give each cluster a <code>CLUSTER_NAME</code> of its own.`
  if (leaders.length > 0 || isGone({ seenSecondsAgo, standbys })) return null
  return html`No controller leads the cluster ${isolated(name)}: changes of its HeartbeatChecks have no effect. Pings and deadlines are not concerned. Look at the log of its controllers.`
}

function isGone({ seenSecondsAgo, standbys }: Pick<ClusterHealth, 'seenSecondsAgo' | 'standbys'>): boolean {
  return standbys === 0 && seenSecondsAgo !== null && seenSecondsAgo > GONE_SECONDS
}

function showFacts({ version, waiting, overdueSeconds, spooled }: ServiceHealth, now: Instant): Html {
  const { count, oldestAt } = waiting
  const pending =
    count === 0
      ? html`none pending`
      : html`<a href="/deliveries?status=pending">${count > MAX_WAITING ? `more than ${MAX_WAITING}` : count} pending</a>, the oldest ${ago(oldestAt!, now)}`
  const lateMs = overdueSeconds * SECOND_MS
  return facts([
    ['Version', version],
    ['Deliveries of your organization', pending],
    ['Deadlines', lateMs > LATE_MS ? `${durationWords(lateMs)} late` : 'evaluated on time'],
    ['Pings on disk', spooled === null ? 'none' : html`being recorded, the oldest ${ago(spooled.since, now)}`],
  ])
}

function showReplicas({ replicas, version }: ServiceHealth, now: Instant): Html {
  const rows = table<ServiceHealth['replicas'][number]>(
    [
      ['Host', ({ host }) => isolated(host), 'name'],
      [
        'State',
        ({ isLive, seenSecondsAgo }) =>
          isLive ? badge('up', 'Works') : badge('down', `Missing for ${durationWords(seenSecondsAgo * SECOND_MS)}`),
      ],
      ['Role', ({ role }) => role],
      [
        'Version',
        (replica) =>
          html`${replica.version}${replica.version === version ? '' : html` <small class="muted">differs from this replica</small>`}`,
      ],
      ['Started', ({ startedAt }) => ago(startedAt, now)],
    ],
    replicas,
  )
  return section('replicas', 'Replicas', rows)
}

function showClusters(clusters: readonly ClusterHealth[], now: Instant): Html {
  const list =
    clusters.length === 0
      ? html`<p class="muted">No controller runs. Only HeartbeatChecks in Kubernetes need one.</p>`
      : table<ClusterHealth>(
          [
            ['Cluster', ({ name }) => isolated(name), 'name'],
            ['Leader', (cluster) => leaderWords(cluster, now)],
            ['Standbys', ({ standbys }) => standbys],
          ],
          clusters,
        )
  return section('clusters', 'Kubernetes clusters', list)
}

function leaderWords({ leaders, standbys, seenSecondsAgo }: ClusterHealth, now: Instant): Html {
  if (leaders.length > 0)
    return html`<span>${leaders.map(({ host, since }, index) => html`${index === 0 ? '' : ', '}${isolated(host)} <small class="muted">since ${ago(since, now)}</small>`)}</span>`
  if (!isGone({ seenSecondsAgo, standbys })) return badge('down', 'None')
  return html`<span class="muted">not seen for ${durationWords(seenSecondsAgo! * SECOND_MS)}</span>`
}

/** By whether its pings were stored on disk; null: some of them are not recorded yet. */
const PINGS_OF_GAP = { true: 'stored on disk', false: 'may be lost', null: 'being recorded' } as const

function showGaps({ gaps }: ServiceHealth, now: Instant): Html {
  const meaning = html`<p class="muted">Times of five seconds or more in which no replica could store pings in the database. Where all of them were stored on disk, nothing is missing. Where some may be lost, deadlines are moved, and no check goes down because of the gap.</p>`
  const list =
    gaps.length === 0
      ? html`<p>None is on record.</p>`
      : table<ShownGap>(
          [
            ['Began', ({ startedAt }) => exactWords(startedAt), 'name'],
            ['Lasted', ({ startedAt, endedAt }) => durationWords(endedAt - startedAt)],
            ['Ended', ({ endedAt }) => ago(endedAt, now)],
            ['Pings', ({ isSpooled }) => PINGS_OF_GAP[`${isSpooled}`]],
          ],
          gaps,
        )
  return section('gaps', 'Gaps', meaning, list)
}
