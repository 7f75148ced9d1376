/** How long the last runs took: bars, and lines for the median, for 95 percent, and for the longest allowed. */

import { scaleBand, scaleLinear } from 'd3-scale'
import type { DurationSummary, PastRun } from '../../../domain/runs.ts'
import { type Html, html } from '../html.ts'
import { OUTCOME_WORDS } from '../words/status-words.ts'
import { durationWords, exactWords } from '../words/time-words.ts'
import { round } from './run-timeline.ts'

const DRAWN_RUNS = 60
const TOP = 16
const FOOT = 130
const HEIGHT = 134
/** A limit that is further above the bars would make them invisible. */
const FARTHEST_LIMIT = 3

/** `runs`: newest first. Null where no run has a duration. */
export function renderDurations(
  runs: readonly PastRun[],
  summary: DurationSummary,
  maxRuntimeMs: number | null,
): Html | null {
  const timed = runs.filter(({ durationMs }) => durationMs !== null).slice(0, DRAWN_RUNS)
  if (timed.length === 0) return null
  const longest = Math.max(...timed.map(({ durationMs }) => durationMs!), summary.p95Ms, 1)
  const isLimitShown = maxRuntimeMs !== null && maxRuntimeMs <= longest * FARTHEST_LIMIT
  const top = isLimitShown ? Math.max(longest, maxRuntimeMs) : longest
  const y = scaleLinear([0, top], [FOOT, TOP])
  // Bars keep their width when there are few of them.
  const places = Math.max(timed.length, 20)
  const x = scaleBand([...Array(places).keys()], [0, 100]).paddingInner(0.25)
  const oldestFirst = timed.toReversed()
  const at = (ms: number) => Math.round(y(ms) * 10) / 10
  const line = (name: string, ms: number) =>
    html`<line class="plot-line line-${name}" x1="0" x2="100%" y1="${at(ms)}" y2="${at(ms)}"/>`
  // The lines are of more runs than the bars.
  const basis = summary.count === 1 ? 'the last run that succeeded' : `the last ${summary.count} runs that succeeded`
  const label = `How long ${timed.length === 1 ? 'the last run' : `the last ${timed.length} runs`} took. Of ${basis}: median ${durationWords(summary.medianMs)}, 95 % at most ${durationWords(summary.p95Ms)}`
  return html`<svg class="plot durations" role="img" width="100%" height="${HEIGHT}" aria-label="${label}">
<text class="plot-label" x="0" y="11">${durationWords(top)}</text>
<line class="plot-axis" x1="0" x2="100%" y1="${FOOT}" y2="${FOOT}"/>
${oldestFirst.map(({ outcome, durationMs, startedAt, endedAt }, index) => {
  const height = Math.max(2, FOOT - at(durationMs!))
  const title = `${exactWords(startedAt ?? endedAt!)}: ${durationWords(durationMs!)}, ${OUTCOME_WORDS[outcome]}`
  return html`<rect class="plot-run run-${outcome}" x="${round(x(index)!)}%" y="${round(FOOT - height)}" width="${round(x.bandwidth())}%" height="${round(height)}"><title>${title}</title></rect>`
})}
${line('median', summary.medianMs)}
${line('p95', summary.p95Ms)}
${isLimitShown ? line('limit', maxRuntimeMs) : ''}
</svg>
<dl class="legend">
<div><dt><span class="key key-median"></span>Median</dt><dd>${durationWords(summary.medianMs)}</dd></div>
<div><dt><span class="key key-p95"></span>p95: 95 % take at most</dt><dd>${durationWords(summary.p95Ms)}</dd></div>
<div><dt>Longest</dt><dd>${durationWords(summary.longestMs)}</dd></div>
<div><dt>${maxRuntimeMs === null || !isLimitShown ? '' : html`<span class="key key-limit"></span>`}Maximum run time</dt><dd>${
    maxRuntimeMs === null ? 'none' : `${durationWords(maxRuntimeMs)}${isLimitShown ? '' : ' (above the plot)'}`
  }</dd></div>
</dl>
<p class="muted note">Median, p95 and longest are those of ${basis}.</p>`
}
