/** The time axis of a plot. Plots have no fixed width: x is in percent, so that text keeps its size on a phone. */

import { type ScaleTime, scaleUtc } from 'd3-scale'
import type { Instant } from '../../../domain/check.ts'
import { type Html, html } from '../html.ts'

export type TimeScale = ScaleTime<number, number>

/** From percent 0 to 100. */
export function timeScale(from: Instant, to: Instant): TimeScale {
  return scaleUtc([from, to], [0, 100]).clamp(true)
}

const DAY_MS = 86_400_000
const TICKS = 4

const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
})
const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** Lines and labels; `y` is the foot of the plot, in pixels. */
export function timeTicks(scale: TimeScale, y: number): Html {
  const [from, to] = scale.domain() as [Date, Date]
  const format = to.getTime() - from.getTime() < 2 * DAY_MS ? clock : date
  const labels = scale.ticks(TICKS).map((at) => ({ x: round(scale(at)), label: format.format(at) }))
  // A label is in the middle of its line, and would leave the plot near its ends. Ticks of less than a day can share a
  // date.
  const shown = labels.filter(({ x, label }, index) => x > 6 && x < 94 && label !== labels[index - 1]?.label)
  return html`${shown.map(
    ({ x, label }) => html`<line class="plot-tick" x1="${x}%" x2="${x}%" y1="0" y2="${y}"/>
<text class="plot-label" x="${x}%" y="${y + 14}" text-anchor="middle">${label}</text>`,
  )}`
}

/** Percent with two decimals. */
export function round(x: number): number {
  return Math.round(x * 100) / 100
}
