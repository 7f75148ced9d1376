import { describe, expect, it } from 'vitest'
import { type BarOutcome, type RunBar, STRIP_RUNS } from '../../../../src/domain/survey.ts'
import { renderStrip, stripWords } from '../../../../src/http/dashboard/plots/strip.ts'

const run = (outcome: BarOutcome, durationMs: number | null = null): RunBar => ({ outcome, durationMs })
const draw = (runs: readonly RunBar[]) => renderStrip(runs).toString()
/** The bars of an outcome: where each stands, and how high it is. */
function barsOf(svg: string, outcome: BarOutcome): { x: number; height: number }[] {
  const [, path = ''] = new RegExp(`<path class="bar-${outcome}" d="([^"]*)"`).exec(svg) ?? []
  return Array.from(path.matchAll(/M(\d+) 24v-(\d+)/g), ([, x, height]) => ({ x: Number(x), height: Number(height) }))
}

describe('the strip of the last runs', () => {
  it('has a bar for each run, the newest at the right, the longest the highest', () => {
    const svg = draw([run('success', 0), run('success', 25), run('success', 100), run('fail', 100)])
    expect(barsOf(svg, 'success')).toEqual([
      { x: 132, height: 4 },
      { x: 137, height: 14 },
      { x: 142, height: 24 },
    ])
    expect(barsOf(svg, 'fail')).toEqual([{ x: 147, height: 24 }])
  })

  it('marks what did not succeed below the line, so that it shows without colour', () => {
    for (const outcome of ['fail', 'missed', 'overran', 'outage'] as const)
      expect(draw([run(outcome)])).toContain('M147 26V29')
    expect(draw([run('success')])).not.toContain('26V29')
  })

  it('draws runs of unknown duration alike, missed ones at full height, and hidden ones low', () => {
    const svg = draw([run('success'), run('missed'), run('overran'), run('outage'), run('success', 1)])
    expect(barsOf(svg, 'success').map(({ height }) => height)).toEqual([12, 24])
    expect(barsOf(svg, 'missed')[0]!.height).toBe(24)
    expect(barsOf(svg, 'overran')[0]!.height).toBe(24)
    expect(barsOf(svg, 'outage')[0]!.height).toBe(4)
  })

  it('draws runs that took no time, and one that took a week', () => {
    expect(barsOf(draw([run('success', 0), run('success', 0)]), 'success').map(({ height }) => height)).toEqual([4, 4])
    expect(barsOf(draw([run('success', 604_800_000)]), 'success')).toEqual([{ x: 147, height: 24 }])
  })

  it('needs few bytes: a path for each outcome', () => {
    const outcomes = ['success', 'fail', 'missed', 'overran', 'outage'] as const
    const runs = Array.from({ length: STRIP_RUNS }, (_, index) => run(outcomes[index % 5]!, index * 1_000))
    const svg = draw(runs)
    expect(svg.match(/<path/g)).toHaveLength(5)
    expect(svg.length).toBeLessThan(1_200)
    expect(svg).not.toContain('style=')
  })

  it('says without a run that there is none', () => {
    expect(draw([])).toBe('<span class="muted">No runs yet</span>')
  })

  it.each([
    [[run('success')], 'Last run: 1 succeeded.'],
    [
      [run('success', 12_000), run('fail')],
      'Last 2 runs: 1 succeeded, 1 failed. Newest failures: failed (the last run). Duration: 12 s.',
    ],
    [
      [
        run('success', 2_000),
        run('missed'),
        run('overran'),
        run('outage'),
        run('success', 200_000),
        run('fail', 12_000),
      ],
      'Last 6 runs: 2 succeeded, 1 failed, 1 missed, 1 took too long, 1 unknown, while the service was down. Newest failures: failed (the last run), took too long (3 runs earlier), missed (4 runs earlier). Durations: 2 s to 3 min 20 s, the last one 12 s.',
    ],
  ])('has the same in words', (runs, words) => {
    expect(stripWords(runs)).toBe(words)
    expect(draw(runs)).toContain(`<title>${words}</title>`)
  })
})
