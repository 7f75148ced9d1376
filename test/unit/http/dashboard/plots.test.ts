import { describe, expect, it } from 'vitest'
import { type PastRun, RUN_OUTCOMES, summarizeDurations } from '../../../../src/domain/runs.ts'
import { renderDurations } from '../../../../src/http/dashboard/plots/durations.ts'
import { DRAWN_RUNS, renderTimeline } from '../../../../src/http/dashboard/plots/run-timeline.ts'
import { DAY, HOUR, MINUTE, NOON, SECOND } from '../../../support/builders.ts'

const run = (endedAt: number | null, more: Partial<PastRun> = {}): PastRun => ({
  outcome: 'success',
  startedAt: endedAt === null ? null : endedAt - MINUTE,
  endedAt,
  durationMs: MINUTE,
  exitCode: 0,
  pingId: 'ping',
  ...more,
})
/** Newest first, a day apart. */
const daily = (count: number) => Array.from({ length: count }, (_, index) => run(NOON - index * DAY))

describe('the timeline of runs', () => {
  const render = (runs: PastRun[], spans = [{ status: 'up', from: 0, to: NOON } as const]) =>
    renderTimeline({ runs, spans, now: NOON })?.toString() ?? null

  it('is absent without a run', () => {
    expect(render([])).toBeNull()
  })

  it('shows each outcome in a form and with words of its own', () => {
    const unfinished = { startedAt: NOON - HOUR, endedAt: null, durationMs: null }
    const svg = render(
      RUN_OUTCOMES.map((outcome) => run(NOON, { outcome, ...(/running|un/.test(outcome) ? unfinished : {}) })),
    )!
    for (const outcome of RUN_OUTCOMES) expect(svg.match(new RegExp(`plot-run run-${outcome}"`, 'g'))).toHaveLength(1)
    expect(svg).toContain(': 1 succeeded, 1 ended with a warning, 1 failed, 1 running, 1 not finished"')
    expect(svg).toContain('<title>2026-11-21 11:59:00 UTC: failed after 1 min</title>')
    expect(svg).toContain('<title>2026-11-21 11:00:00 UTC: running</title>')
    const heights = [...svg.matchAll(/run-(\w+)" x="[^"]*" y="[^"]*" width="[^"]*" height="(\d+)"/g)].map(
      ([, name, height]) => [name, height],
    )
    expect(Object.fromEntries(heights)).toMatchObject({ success: '18', warn: '24', fail: '28', unfinished: '24' })
  })

  it('draws a bounded number of runs and spans, all inside', () => {
    const spans = Array.from({ length: 1_000 }, (_, index) => ({
      status: index % 2 === 0 ? ('up' as const) : ('down' as const),
      from: NOON - (1_000 - index) * HOUR,
      to: NOON - (999 - index) * HOUR,
    }))
    const svg = renderTimeline({ runs: daily(500), spans, now: NOON })!.toString()
    expect(svg.match(/plot-run/g)).toHaveLength(DRAWN_RUNS)
    expect(svg.match(/plot-status/g)).toHaveLength(200)
    const places = [...svg.matchAll(/ x="([\d.]+)%"/g)].map(([, x]) => Number(x))
    expect(Math.min(...places)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...places)).toBeLessThan(100)
    expect(svg).not.toMatch(/NaN|style=/)
  })

  it('shows a run without a start at its end, and a run of now in ten minutes', () => {
    const svg = render([run(NOON, { startedAt: null, durationMs: null })])!
    expect(svg).toContain('Timeline of 1 run since 2026-11-21 11:50:00 UTC')
    expect(svg).toContain('run-success" x="99%" y="14" width="1%"')
  })
})

describe('the plot of durations', () => {
  const render = (runs: PastRun[], maxRuntimeMs: number | null = null) => {
    const summary = summarizeDurations(runs.flatMap(({ durationMs }) => durationMs ?? []))!
    return renderDurations(runs, summary, maxRuntimeMs)?.toString() ?? null
  }

  it('has a bar for each run that has a duration, the newest on the right', () => {
    const svg = render([run(NOON, { durationMs: 10 * SECOND }), run(NOON, { durationMs: null }), run(NOON)])!
    const bars = [...svg.matchAll(/x="([\d.]+)%" y="[\d.]+" width="[\d.]+%" height="([\d.]+)"/g)]
    expect(bars.map(([, , height]) => Number(height))).toEqual([114, 19])
    expect(Number(bars[0]![1])).toBeLessThan(Number(bars[1]![1]))
    expect(render(daily(500))!.match(/plot-run/g)).toHaveLength(60)
  })

  it.each([
    [null, false, 'none'],
    [2 * MINUTE, true, '2 min'],
    [HOUR, false, '1 h (above the plot)'],
  ])('with a maximum run time of %s', (limit, isDrawn, words) => {
    const svg = render([run(NOON)], limit)!
    expect(svg.includes('line-limit')).toBe(isDrawn)
    expect(svg).toContain(`Maximum run time</dt><dd>${words}</dd>`)
    expect(svg).toMatch(/line-median.*line-p95/s)
  })

  it('says of which runs the median and p95 are: more than have a bar', () => {
    const runs = daily(70)
    const summary = summarizeDurations(Array(400).fill(MINUTE))!
    const text = renderDurations(runs, summary, null)!.toString()
    expect(text).toContain(
      'aria-label="How long the last 60 runs took. Of the last 400 runs that succeeded: median 1 min, 95 % at most 1 min"',
    )
    expect(text).toContain('Median, p95 and longest are those of the last 400 runs that succeeded.')
    expect(render([run(NOON)])).toContain('those of the last run that succeeded.')
  })

  it('is absent when the newest runs have no duration, and stands a duration of nothing', () => {
    const summary = summarizeDurations([MINUTE])!
    expect(renderDurations([run(NOON, { durationMs: null })], summary, null)).toBeNull()
    expect(render([run(NOON, { durationMs: 0 })])).not.toMatch(/NaN|Infinity/)
  })
})
