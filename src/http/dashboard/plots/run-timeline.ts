/** The runs of a check on a line of time. Plots have no fixed width: x is in percent, and text keeps its size. */

import { type ScaleTime, scaleUtc } from 'd3-scale'
import type { CheckReview } from '../../../checks/review-check.ts'
import type { Instant } from '../../../domain/check.ts'
import type { PastRun, RunOutcome } from '../../../domain/runs.ts'
import { type Html, html } from '../html.ts'
import { countOutcomes, OUTCOME_WORDS, STATUS_WORDS } from '../words/status-words.ts'
import { durationWords, exactWords } from '../words/time-words.ts'

/** The most runs and spans that are drawn. */
export const DRAWN_RUNS = 100
const DRAWN_SPANS = 200
const SHORTEST_MS = 600_000
/** A narrower bar is 3 pixels wide. */
const NARROW_PERCENT = 0.9

const RUNS = { y: 4, height: 28 }
const STATUS = { y: 40, height: 12 }
const FOOT = 56
const HEIGHT = 74

/** Runs fail at full height; the others are lower. */
const HEIGHTS: Readonly<Record<RunOutcome, number>> = { success: 18, warn: 24, fail: 28, running: 18, unfinished: 24 }

/** Null without runs. The text alternative is the caller's table of runs; the label counts them. */
export function renderTimeline({ runs, spans, now }: Pick<CheckReview, 'runs' | 'spans' | 'now'>): Html | null {
  const drawn = runs.slice(0, DRAWN_RUNS)
  if (drawn.length === 0) return null
  const first = Math.min(...drawn.map((run) => run.startedAt ?? run.endedAt!))
  const from = Math.min(first, now - SHORTEST_MS)
  const scale = scaleUtc([from, now], [0, 100]).clamp(true)
  const statuses = spans.filter(({ to }) => to > from).slice(-DRAWN_SPANS)
  return html`<svg class="plot timeline" role="img" width="100%" height="${HEIGHT}" aria-label="${labelOf(drawn, from)}">
${timeTicks(scale)}
${statuses.map((span) => {
  const x = scale(Math.max(span.from, from))
  const title = `${STATUS_WORDS[span.status]} from ${exactWords(span.from)} to ${span.to >= now ? 'now' : exactWords(span.to)}`
  const height = span.status === 'down' ? STATUS.height : 4
  const y = STATUS.y + STATUS.height - height
  return html`<rect class="plot-status plot-${span.status}" x="${round(x)}%" y="${y}" width="${widthOf(x, scale(span.to))}" height="${height}"><title>${title}</title></rect>`
})}
${drawn.toReversed().map((run) => {
  const end = run.endedAt ?? (run.outcome === 'running' ? now : run.startedAt!)
  const x = Math.min(scale(run.startedAt ?? end), 99)
  const height = HEIGHTS[run.outcome]
  const y = RUNS.y + RUNS.height - height
  return html`<rect class="plot-run run-${run.outcome}" x="${round(x)}%" y="${y}" width="${widthOf(x, scale(end))}" height="${height}"><title>${titleOf(run)}</title></rect>`
})}
</svg>`
}

function widthOf(from: number, to: number): string {
  return to - from < NARROW_PERCENT ? '3' : `${round(to - from)}%`
}

function titleOf({ outcome, startedAt, endedAt, durationMs }: PastRun): string {
  const after = durationMs === null ? '' : ` after ${durationWords(durationMs)}`
  return `${exactWords(startedAt ?? endedAt!)}: ${OUTCOME_WORDS[outcome]}${after}`
}

function labelOf(runs: readonly PastRun[], from: Instant): string {
  const all = runs.length === 1 ? '1 run' : `${runs.length} runs`
  return `Timeline of ${all} since ${exactWords(from)}: ${countOutcomes(runs)}`
}

const DAY_MS = 86_400_000
const TICKS = 4

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' })
const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** Lines and labels. */
function timeTicks(scale: ScaleTime<number, number>): Html {
  const [from, to] = scale.domain() as [Date, Date]
  const format = to.getTime() - from.getTime() < 2 * DAY_MS ? clock : date
  const labels = scale.ticks(TICKS).map((at) => ({ x: round(scale(at)), label: format.format(at) }))
  // A label is in the middle of its line, and would leave the plot near its ends. Ticks of less than a day can share a
  // date.
  const shown = labels.filter(({ x, label }, index) => x > 6 && x < 94 && label !== labels[index - 1]?.label)
  return html`${shown.map(
    ({ x, label }) => html`<line class="plot-tick" x1="${x}%" x2="${x}%" y1="0" y2="${FOOT}"/>
<text class="plot-label" x="${x}%" y="${FOOT + 14}" text-anchor="middle">${label}</text>`,
  )}`
}

/** Percent with two decimals. */
export function round(x: number): number {
  return Math.round(x * 100) / 100
}
