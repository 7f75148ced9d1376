import { describe, expect, it } from 'vitest'
import type { DeadlineDetail } from '../../../../src/checks/find-checks.ts'
import { createSeenKeeper, type SeenOptions } from '../../../../src/operator/runs/keep-seen.ts'
import type { Service } from '../../../../src/operator/service.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { listen } from '../../../support/operator.ts'

/** The clock of the database is so much ahead of this process's. */
const AHEAD_MS = 7_000
const DETAIL: DeadlineDetail = {
  resource: { cluster: 'prod', namespace: 'shop', name: 'nightly' },
  source: 'nightly',
  dueAt: 1,
  job: null,
  detail: 'no node has enough memory',
}

function start(changes: Partial<SeenOptions> = {}) {
  const clock = createManualClock(0)
  const { said, log } = listen()
  const steps: string[] = []
  const took = { confirm: 0, record: 0, explain: 0 }
  const state = {
    due: ['prod'] as readonly string[],
    confirmed: ['prod'] as readonly string[],
    busy: new Set<string>(),
    isNeeded: true,
    held: [] as readonly string[],
  }
  const service = { now: () => clock.now() + AHEAD_MS } as Service
  const note = async (step: string, ms = 0, signal?: AbortSignal) => {
    steps.push(`${clock.now()} ${step}`)
    if (ms > 0) await clock.sleep(ms, signal)
  }
  const keeper = createSeenKeeper(
    { service, clock, log },
    {
      areas: ['prod'],
      due: async () => state.due,
      busy: () => state.busy,
      async confirm(_, signal) {
        await note('confirm', took.confirm, signal)
        return state.confirmed
      },
      async whenRecorded() {
        await note('record', took.record)
        return state.held
      },
      async explain(_, until) {
        await note(`explain ${until}`, took.explain)
        return [DETAIL]
      },
      save: ({ until }, details) => note(`save ${until} ${details.map(({ detail }) => detail).join()}`),
      saveUnseen: (areas) => note(`unseen ${areas.join()}`),
      needed: () => (state.isNeeded ? ['prod'] : []),
      ...changes,
    },
  )
  return { clock, said, steps, took, state, keeper }
}

const timesOf = (steps: readonly string[]) => savedIn(steps).map((step) => Number(step.split(' ')[0]))
const savedIn = (steps: readonly string[]) => steps.filter((step) => step.includes('save'))

describe('a round', () => {
  it('takes the time of the database first, and saves it when the caches hold all and all is recorded', async () => {
    const { clock, keeper, steps, took } = start()
    Object.assign(took, { confirm: 1_000, record: 300, explain: 50 })
    const round = keeper.runOnce()
    await clock.advance(2_000)
    expect(await round).toBe(7_000)
    expect(steps).toEqual(['0 confirm', '1000 record', '1300 explain 7000', '1350 save 7000 no node has enough memory'])
  })

  it('saves nothing when the caches may lack something, and records and explains nothing', async () => {
    const { keeper, steps, state } = start()
    state.confirmed = []
    expect(await keeper.runOnce()).toBeNull()
    expect(steps).toEqual(['0 confirm', '0 unseen prod'])
    // Nothing is said of an area without HeartbeatChecks that follow a source.
    state.isNeeded = false
    await keeper.runOnce()
    expect(steps.slice(2)).toEqual(['0 confirm', '0 unseen '])
  })

  it('saves that an area was not seen which was seen before: a restored database may not know it', async () => {
    const { keeper, steps, state } = start()
    await keeper.runOnce()
    state.confirmed = []
    await keeper.runOnce()
    expect(steps.at(-1)).toBe('0 unseen prod')
  })

  it('saves the time without details that cannot be found out', async () => {
    const { keeper, steps, said } = start({ explain: () => Promise.reject(new Error('forbidden')) })
    expect(await keeper.runOnce()).toBe(7_000)
    expect(savedIn(steps)).toEqual(['0 save 7000 '])
    expect(said).toEqual(['why runs have not started or ended could not be found out'])
  })

  it('waits five seconds for the details', async () => {
    const { clock, keeper, steps } = start({ explain: () => new Promise(() => {}) })
    const round = keeper.runOnce()
    await clock.advance(4_999)
    expect(savedIn(steps)).toEqual([])
    await clock.advance(1)
    expect(await round).toBe(7_000)
    expect(savedIn(steps)).toEqual(['5000 save 7000 '])
  })

  it.each(['confirm', 'record', 'explain'] as const)('saves nothing once it is stopped: in %s', async (step) => {
    const { clock, keeper, steps, took } = start()
    took[step] = 60_000
    keeper.start()
    await clock.advance(1_000)
    const stopped = keeper.stop(0)
    await clock.advance(60_000)
    await stopped
    expect(savedIn(steps)).toEqual([])
  })
})

describe('a round of several areas', () => {
  it('explains and saves those that are confirmed', async () => {
    const saved: unknown[] = []
    const { keeper, state, steps } = start({
      areas: ['prod/bank', 'prod/shop'],
      needed: () => ['prod/bank', 'prod/shop'],
      explain: async (areas) => [{ ...DETAIL, detail: areas.join() }],
      save: async (seen, details) => void saved.push([seen, details.map(({ detail }) => detail)]),
    })
    state.confirmed = ['prod/shop']
    state.held = ['shop/nightly']
    expect(await keeper.runOnce()).toBe(7_000)
    expect(saved).toEqual([[{ areas: ['prod/shop'], until: 7_000, held: ['shop/nightly'] }, ['prod/shop']]])
    expect(steps).toContain('0 unseen prod/bank')
  })

  it('reports an area once of which nothing could be saved for a minute, while others go on', async () => {
    const { clock, keeper, said, state } = start({ areas: ['prod/bank', 'prod/shop'] })
    state.confirmed = ['prod/shop']
    keeper.start()
    await clock.advance(60_000)
    expect(said).toEqual([])
    await clock.advance(30_000)
    expect(said).toHaveLength(1)
    state.confirmed = ['prod/bank', 'prod/shop']
    await clock.advance(10_000)
    state.confirmed = ['prod/bank']
    await clock.advance(90_000)
    expect(said).toHaveLength(2)
    await keeper.stop(0)
  })
})

describe('the rounds', () => {
  it('begin every two seconds while a deadline waits, however long one takes', async () => {
    const { clock, keeper, steps, took } = start()
    took.confirm = 1_000
    keeper.start()
    await clock.advance(7_999)
    expect(savedIn(steps).map((step) => step.split(' ')[2])).toEqual(['7000', '9000', '11000', '13000'])
    await keeper.stop(0)
  })

  it('never run at once, and pause after a long one', async () => {
    const { clock, keeper, steps, took } = start()
    took.confirm = 5_000
    keeper.start()
    await clock.advance(11_000)
    expect(steps.filter((step) => step.includes('confirm'))).toEqual(['0 confirm', '5200 confirm', '10400 confirm'])
    const stopped = keeper.stop(0)
    await clock.advance(5_000)
    await stopped
  })

  it('begin every thirty seconds while no deadline waits for one', async () => {
    const { clock, keeper, steps, state } = start()
    state.due = []
    keeper.start()
    await clock.advance(89_999)
    expect(timesOf(steps)).toEqual([0, 30_000, 60_000])
    await keeper.stop(0)
  })

  it('begin every two seconds while a run is in progress', async () => {
    const { clock, keeper, steps, state } = start()
    state.due = []
    state.busy.add('prod').add('other')
    keeper.start()
    await clock.advance(5_999)
    expect(timesOf(steps)).toEqual([0, 2_000, 4_000])
    state.busy.clear()
    await clock.advance(30_000)
    expect(timesOf(steps)).toEqual([0, 2_000, 4_000, 34_000])
    await keeper.stop(0)
  })

  it('begin within two seconds of a deadline, and rest again when it is decided', async () => {
    const until: number[] = []
    let dueAt = AHEAD_MS + 13_000
    const due = async (now: number) => {
      until.push(now)
      return now >= dueAt ? ['prod'] : []
    }
    const { clock, keeper, steps } = start({ due })
    keeper.start()
    await clock.advance(15_999)
    expect(timesOf(steps)).toEqual([0, 14_000])
    await clock.advance(1)
    expect(timesOf(steps)).toEqual([0, 14_000, 16_000])
    dueAt = Number.POSITIVE_INFINITY
    await clock.advance(60_000)
    expect(timesOf(steps)).toEqual([0, 14_000, 16_000, 46_000, 76_000])
    // By the time of the database.
    expect(until.slice(0, 3)).toEqual([AHEAD_MS, AHEAD_MS + 2_000, AHEAD_MS + 4_000])
    await keeper.stop(0)
  })

  it('ask for the areas of these deadlines alone', async () => {
    const asked: string[] = []
    const { clock, keeper, state } = start({
      areas: ['prod/bank', 'prod/shop'],
      async confirm(areas) {
        asked.push(`${clock.now()} ${areas.join()}`)
        return areas
      },
    })
    state.due = []
    keeper.start()
    await clock.advance(5_000)
    state.due = ['prod/shop', 'other']
    await clock.advance(2_000)
    state.due = []
    await clock.advance(30_000)
    expect(asked).toEqual(['0 prod/bank,prod/shop', '6000 prod/shop', '30000 prod/bank', '36000 prod/shop'])
    await keeper.stop(0)
  })

  it('begin every two seconds at rest too where an area was not confirmed, until that is reported', async () => {
    const { clock, keeper, steps, state, said } = start()
    state.due = []
    state.confirmed = []
    keeper.start()
    await clock.advance(35_000)
    const asked = () => steps.filter((step) => step.includes('confirm')).map((step) => Number(step.split(' ')[0]))
    expect(asked()).toEqual([0, 30_000, 32_000, 34_000])
    await clock.advance(27_000)
    expect([said.length, asked().at(-1)]).toEqual([1, 62_000])
    await clock.advance(60_000)
    expect(asked().slice(-2)).toEqual([92_000, 122_000])
    await keeper.stop(0)
  })

  it('go on after one that failed', async () => {
    let failures = 2
    const save = async () => {
      failures -= 1
      if (failures >= 0) throw new Error('the database is away')
    }
    const { clock, keeper, said } = start({ save })
    keeper.start()
    await clock.advance(3_000)
    expect(failures).toBeLessThan(0)
    expect(said).toEqual(Array.from({ length: 2 }, () => 'background work failed; it is tried again'))
    await keeper.stop(0)
  })

  it('report once when nothing could be saved for a minute', async () => {
    const { clock, keeper, said, state } = start()
    keeper.start()
    await clock.advance(10_000)
    state.confirmed = []
    await clock.advance(60_000)
    expect(said).toEqual([])
    await clock.advance(30_000)
    expect(said).toEqual([expect.stringMatching(/^the Jobs of a cluster or namespace are not known up to now/)])
    state.confirmed = ['prod']
    await clock.advance(10_000)
    state.confirmed = []
    await clock.advance(90_000)
    expect(said).toHaveLength(2)
    await keeper.stop(0)
  })
})
