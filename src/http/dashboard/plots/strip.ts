/**
 * The last runs of a check as a strip of bars, the newest at the right. A list has a hundred strips: a path for each
 * outcome, and a sentence as text alternative, keep it small. What did not succeed has a mark below the line.
 */

import { scaleSqrt } from 'd3-scale'
import { type BarOutcome, type RunBar, STRIP_RUNS } from '../../../domain/survey.ts'
import { type Html, html } from '../html.ts'
import { countOutcomes, OUTCOME_WORDS } from '../words/status-words.ts'
import { durationWords } from '../words/time-words.ts'

/** Units of the drawing, which are pixels. */
const STEP = 5
const BASE = 24
const MARK = { from: 26, to: 29 }
const SHORTEST = 4
const WIDTH = STRIP_RUNS * STEP
/** Of runs whose duration is not known. */
const PLAIN = 12
/** No run: a missed deadline shows at full height, a gap of ours does not stand out. */
const FIXED: Partial<Record<BarOutcome, number>> = { missed: BASE, overran: BASE, outage: SHORTEST }

const FAILURES_NAMED = 3
const AGES = ['the last run', '1 run earlier']

/** `runs`: at most STRIP_RUNS, oldest first. */
export function renderStrip(runs: readonly RunBar[]): Html {
  if (runs.length === 0) return html`<span class="muted">No runs yet</span>`
  return html`<svg class="strip" role="img" width="${WIDTH}" height="${MARK.to + 1}" viewBox="0 0 ${WIDTH} ${MARK.to + 1}"><title>${stripWords(runs)}</title>${drawPaths(runs)}</svg>`
}

/** `Last 30 runs: 28 succeeded, 1 failed, 1 missed. Newest failures: failed (the last run). Durations: ...` */
export function stripWords(runs: readonly RunBar[]): string {
  const durations = runs.flatMap(({ durationMs }) => (durationMs === null ? [] : [durationMs]))
  const subject = runs.length === 1 ? 'Last run' : `Last ${runs.length} runs`
  const text = `${subject}: ${countOutcomes(runs)}.${runs.length === 1 ? '' : failureWords(runs)}`
  if (durations.length === 0) return text
  const [shortest, longest] = [durationWords(Math.min(...durations)), durationWords(Math.max(...durations))]
  if (shortest === longest) return `${text} Duration: ${longest}.`
  return `${text} Durations: ${shortest} to ${longest}, the last one ${durationWords(durations.at(-1)!)}.`
}

/** How many runs before the last one the newest failures were. */
function failureWords(runs: readonly RunBar[]): string {
  const failures = runs
    .toReversed()
    .map(({ outcome }, age) => ({ outcome, age }))
    .filter(({ outcome }) => outcome !== 'success' && outcome !== 'outage')
    .slice(0, FAILURES_NAMED)
  if (failures.length === 0) return ''
  const words = failures.map(({ outcome, age }) => `${OUTCOME_WORDS[outcome]} (${AGES[age] ?? `${age} runs earlier`})`)
  return ` Newest failures: ${words.join(', ')}.`
}

/** A square root, so that one long run does not flatten the others. */
function drawPaths(runs: readonly RunBar[]): Html[] {
  const longest = Math.max(1, ...runs.map(({ durationMs }) => durationMs ?? 0))
  const heightOf = scaleSqrt([0, longest], [SHORTEST, BASE])
  const first = STRIP_RUNS - runs.length
  const paths = new Map<BarOutcome, string>()
  for (const [index, { outcome, durationMs }] of runs.entries()) {
    const x = (first + index) * STEP + 2
    const height = FIXED[outcome] ?? (durationMs === null ? PLAIN : Math.round(heightOf(durationMs)))
    const mark = outcome === 'success' ? '' : `M${x} ${MARK.from}V${MARK.to}`
    paths.set(outcome, `${paths.get(outcome) ?? ''}M${x} ${BASE}v-${height}${mark}`)
  }
  return Array.from(paths, ([outcome, path]) => html`<path class="bar-${outcome}" d="${path}"/>`)
}
