import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { presentCheck } from '../../../src/http/healthchecks/present.ts'
import { type ImportArguments, UsageError } from '../../../src/import/arguments.ts'
import { runImport } from '../../../src/import/run-import.ts'
import { SourceError } from '../../../src/import/source.ts'
import type { StoredCheck } from '../../../src/store/checks/checks.ts'
import {
  type FakeHealthchecks,
  type Lists,
  recordedChecks as many,
  READ_ONLY_KEY,
  READ_WRITE_KEY,
  RECORDED,
  type RecordedCheck,
  startFakeHealthchecks,
} from '../../support/fake-healthchecks.ts'
import { addProject, addTenant, NOW, useFixture } from '../checks/fixture.ts'

const recorded = RECORDED.checks

const fixture = useFixture()
let source: FakeHealthchecks
beforeAll(async () => {
  source = await startFakeHealthchecks(RECORDED)
})
afterAll(() => source[Symbol.asyncDispose]())
const { tenant } = fixture
beforeEach(() => {
  source.lists = RECORDED
  source.faults = []
})

interface Run {
  readonly status: number
  readonly lines: string[]
  readonly waits: number[]
  readonly warnings: string[]
}

async function run(
  given: Partial<Extract<ImportArguments, { source: 'healthchecks' }>> = {},
  { signal = new AbortController().signal, onProgress = (_: string) => {} } = {},
): Promise<Run> {
  const lines: string[] = []
  const waits: number[] = []
  const warnings: string[] = []
  const clock = { sleep: async (ms: number) => void waits.push(ms) }
  const status = await runImport(
    {
      source: 'healthchecks',
      url: new URL(source.url),
      key: READ_WRITE_KEY,
      project: 'test',
      isDryRun: false,
      ...given,
    },
    {
      context: fixture.context,
      clock,
      say: (line) => lines.push(line),
      warn: (line) => warnings.push(line),
      draw: onProgress,
      signal,
    },
  )
  return { status, lines, waits, warnings }
}

async function stored(projectId = tenant.project) {
  const { rows } = await fixture.database.query<{
    id: string
    publicId: string
    name: string
    slug: string
  }>('select id, public_id as "publicId", name, slug from checks where project_id = $1 order by key', [projectId])
  return rows
}

async function find(publicId: string): Promise<StoredCheck> {
  const { rows } = await fixture.database.query<{ id: string }>('select id from checks where public_id = $1', [
    publicId,
  ])
  return getCheck(fixture.context, tenant, rows[0]!.id)
}

const addChannel = (id: string, name: string) =>
  fixture.database.query(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values ($1, $2, 'slack', $3, '', '', '{}', now())`,
    [id, tenant.organizationId, name],
  )

const named = (name: string) => recorded.find((check) => check.name === name)!

describe('what is imported of a check', () => {
  it('is its id, name, slug, tags, description, period and grace time', async () => {
    const { status, lines } = await run()
    expect(status).toBe(3)
    expect(await find(named('Database backup').uuid)).toMatchObject({
      publicId: named('Database backup').uuid,
      projectId: tenant.project,
      name: 'Database backup',
      slug: 'database-backup',
      description: 'Dumps all databases.\nAsk the team.',
      tags: ['prod', 'db'],
      managedBy: 'api',
      spec: { periodSeconds: 3_600, schedule: null, graceSeconds: 600, resumeOnPing: true },
    })
    expect(lines.at(-1)).toMatch(/^made \d+, there already 0, refused 1, left out \d+$/)
  })

  it('is whether its slug is empty, which the API of healthchecks then shows; ours shows one of its own', async () => {
    const [one, two, three] = many(3)
    const checks = [
      { ...one!, name: 'Left empty', slug: '' },
      { ...two!, name: 'Given', slug: 'given' },
      // As of an instance that knows no slugs.
      { ...three!, name: 'Older', slug: undefined },
    ]
    source.lists = { ...RECORDED, checks }
    await run()
    const found = await Promise.all(checks.map(({ uuid }) => find(uuid)))
    expect(found.map(({ slug, slugLeftEmpty }) => [slug, slugLeftEmpty === true])).toEqual([
      ['left-empty', true],
      ['given', false],
      ['older', false],
    ])
    const view = { version: 3, now: NOW, siteUrl: '', pingUrl: '', badgeKey: null, channelIds: null } as const
    expect(found.map((check) => presentCheck(check, view).slug)).toEqual(['', 'given', 'older'])
  })

  it('is its schedule with its zone', async () => {
    await run()
    expect((await find(named('Report').uuid)).spec).toMatchObject({
      periodSeconds: null,
      schedule: '30 4 * * 1-5',
      timeZone: 'Europe/Riga',
      graceSeconds: 1_200,
    })
  })

  it('is whether it is paused, until when pings do not resume it', async () => {
    await run()
    const paused = await find(named('Paused').uuid)
    expect(paused.state).toMatchObject({ status: 'paused', dueAt: null })
    expect(paused.spec.resumeOnPing).toBe(true)
    expect((await find(named('Paused by hand').uuid)).spec.resumeOnPing).toBe(false)
  })

  it('is its last ping: it is up, and its next one is expected from now on', async () => {
    await run()
    const { state } = await find(named('Pinged').uuid)
    const { last_ping } = named('Pinged') as unknown as { last_ping: string }
    expect(state).toMatchObject({
      status: 'up',
      lastPingAt: Date.parse(last_ping),
      lastSuccessAt: Date.parse(last_ping),
      expectedAt: NOW + 3_600_000,
    })
  })

  it('of one that is down there: it is new, and a ping is expected from now on', async () => {
    await run()
    const { state } = await find(named('Failed').uuid)
    expect(state).toMatchObject({ status: 'new', expectedAt: NOW + 3_600_000, lastSuccessAt: null })
    expect(state.lastPingAt).not.toBeNull()
  })

  it.for(['yesterday', '-000001-01-01T00:00:00Z', '+010000-01-01T00:00:00Z'])(
    'is no last ping that is no time: %s',
    async (last_ping) => {
      source.lists = { checks: [{ ...named('Failed'), last_ping }], channels: [] }
      await run()
      expect((await find(named('Failed').uuid)).state.lastPingAt).toBeNull()
    },
  )

  it('of one that was never pinged: its first ping arms it', async () => {
    await run()
    expect((await find(named('Database backup').uuid)).state).toMatchObject({ status: 'new', dueAt: null })
  })

  it('and what is not is listed with its reason', async () => {
    const { lines } = await run()
    const table = lines.join('\n')
    expect(table).toMatch(/^OnCalendar +refused +its schedule is an OnCalendar expression: /m)
    expect(table).toMatch(/^Tagged +made +tags are left out: /m)
    expect(table).toMatch(/^Filtered +made +is without its methods$/m)
    expect(table).toMatch(/^channel \S.* +left out +healthchecks shows no address of a channel/m)
  })

  it('notifies none of the channels where it notified none', async () => {
    await run()
    expect((await find(named('Silent').uuid)).channels).toEqual([])
    expect((await find(named('Database backup').uuid)).channels).toBeNull()
  })

  it('is which channels it notifies, where channels here have their names', async () => {
    const [team, mail] = [
      { id: randomUUID(), name: 'Team' },
      { id: randomUUID(), name: 'ops@example.com' },
    ]
    const channels = RECORDED.channels as readonly { readonly id: string; readonly name: string }[]
    const idOf = (name: string) => channels.find((channel) => channel.name === name)!.id
    const [one, two, three, four] = many(4)
    const checks = [
      { ...one!, name: 'Of the team', channels: idOf('Team') },
      { ...two!, name: 'Of both', channels: `${idOf('Team')},${idOf('ops@example.com')}` },
      { ...three!, name: 'Of one without a name', channels: `${idOf('Team')},${idOf('')}` },
      { ...four!, name: 'Of all', channels: channels.map(({ id }) => id).join(',') },
    ]
    source.lists = { ...RECORDED, checks }
    for (const { id, name } of [team, mail]) await addChannel(id, name)
    const { lines } = await run()
    const chosen = await Promise.all(checks.map(async ({ uuid }) => (await find(uuid)).channels))
    expect(chosen).toEqual([[team.id], [mail.id, team.id], null, null])
    const table = lines.join('\n')
    expect(table).toMatch(
      /^Of one without a name +made +notifies all channels of the project, as there is no channel /m,
    )
    expect(table).toMatch(/^Of all +made$/m)
    expect(table).toMatch(/^channel Team \(slack\) +there already$/m)
    expect(table).toMatch(
      /^channel d4009cfc-\S+ +left out +healthchecks shows no address of a channel: create one of the kind webhook here$/m,
    )
  })

  it.each([
    ['pd', 'one here (docs/use/receivers.md has the kind)'],
    ['discord', 'of the kind discord here'],
    ['sms', 'one here (docs/use/receivers.md has the kind)'],
  ])('a channel of the kind %s is listed with what to create', async (kind, what) => {
    source.lists = { checks: many(1), channels: [{ id: randomUUID(), name: 'Ops', kind }] }
    const { lines } = await run()
    expect(lines.join('\n')).toContain(`create ${what.replace(/^of/, 'one of')}, with this name before the import`)
  })

  it('is not where its cron cannot be read here: the reason says what cannot', async () => {
    source.lists = { checks: [{ ...named('Report'), schedule: '0 0 L * *' }], channels: [] }
    const { lines, status } = await run()
    expect(status).toBe(3)
    expect(lines[0]).toMatch(/^Report +refused +schedule .*L/)
    expect(await stored()).toEqual([])
  })

  it('gets an entry of the audit log', async () => {
    await run()
    const { rows } = await fixture.database.query<{ count: number }>(
      `select count(*) as count from audit_log where action = 'check.created' and actor_kind = 'system'`,
    )
    expect(rows[0]!.count).toBe((await stored()).length)
  })

  it('has another slug where its own is taken, and says so', async () => {
    source.lists = { checks: many(recorded.length * 2).filter(({ name }) => name === 'Report'), channels: [] }
    const { lines, status } = await run()
    expect((await stored()).map(({ slug }) => slug)).toEqual(['report', 'report-2'])
    expect(lines[1]).toMatch(/made +the slug report is taken: it has report-2$/)
    expect(status).toBe(0)
  })
})

it('a slug that another process is about to take is not taken from it', async () => {
  source.lists = { checks: many(recorded.length * 2).filter(({ name }) => name === 'Report'), channels: [] }
  let commit = () => {}
  const ending = new Promise<void>((resolve) => {
    commit = resolve
  })
  let theirs: Promise<unknown> = Promise.resolve()
  await new Promise<void>((resolve, reject) => {
    theirs = fixture.database.transaction(async (tx) => {
      await tx.query('set local idle_in_transaction_session_timeout = 0')
      await tx.query(
        `with made as (insert into checks (id, public_id, project_id, name, slug, created_at)
            values (gen_random_uuid(), gen_random_uuid(), $1, 'Theirs', 'report-2', now()) returning key)
          insert into check_states (check_key, period_seconds, grace_seconds, status, since, pings_total, stamped_at)
          select key, 60, 60, 0, now(), 0, now() from made`,
        [tenant.project],
      )
      resolve()
      await ending
    })
    theirs.catch(reject)
  })
  // Not before the slugs of the project were read.
  const { lines, status } = await run({}, { onProgress: (text) => void (text.includes('] 1/') && commit()) })
  await theirs
  expect(status).toBe(0)
  expect(lines[1]).toMatch(/made +the slug report is taken: it has report-3$/)
})

describe('a second run', () => {
  it('changes nothing that exists, and adds what is new', async () => {
    const [first, ...others] = many(30).filter(({ name }) => name !== 'OnCalendar')
    source.lists = { checks: others, channels: [] }
    await run()
    const before = await stored()
    await fixture.database.query(`update checks set name = 'Ours' where key = (select min(key) from checks)`)
    source.lists = { checks: [first!, ...others], channels: [] }
    const { lines, status } = await run()
    expect(status).toBe(0)
    expect(lines.at(-1)).toBe(`made 1, there already ${others.length}, refused 0, left out 0`)
    const after = await stored()
    expect(after.map(({ publicId }) => publicId)).toEqual([...before.map(({ publicId }) => publicId), first!.uuid])
    expect(after[0]!.name).toBe('Ours')
  })

  it('makes what an interrupted one has not made, and nothing twice', async () => {
    const checks = many(30).filter(({ name }) => name !== 'OnCalendar')
    source.lists = { checks, channels: [] }
    const interrupt = new AbortController()
    const drawn: string[] = []
    const onProgress = (text: string) => {
      drawn.push(text)
      if (text.includes('] 7/')) interrupt.abort()
    }
    const first = await run({}, { signal: interrupt.signal, onProgress })
    expect(first.status).toBe(1)
    expect(first.lines.at(-1)).toBe('interrupted: import again for the others')
    // What is printed next does not stand in the line of the progress.
    expect(drawn.at(-1)).toBe('\n')
    expect(await stored()).toHaveLength(7)
    expect((await run()).lines.at(-1)).toBe(`made ${checks.length - 7}, there already 7, refused 0, left out 0`)
    expect((await stored()).map(({ publicId }) => publicId)).toEqual(checks.map(({ uuid }) => uuid))
  })

  it('beside a first one makes nothing twice', async () => {
    source.lists = { checks: many(20).filter(({ name }) => name !== 'OnCalendar'), channels: [] }
    await Promise.all([run(), run()])
    await run()
    const ids = (await stored()).map(({ publicId }) => publicId)
    expect(ids.toSorted()).toEqual(source.lists.checks.map((check) => (check as RecordedCheck).uuid).toSorted())
  })
})

describe('--dry-run', () => {
  it('says what would be made, and writes nothing', async () => {
    const dry = await run({ isDryRun: true })
    expect(await stored()).toEqual([])
    expect(dry.lines.at(-1)).toContain('nothing was written')
    const real = await run()
    expect(dry.lines.slice(0, -1)).toEqual(real.lines)
    expect(dry.status).toBe(real.status)
  })
})

describe('an id that is in use', () => {
  it('in another organization is refused, the others continue, and nothing else is said of it', async () => {
    const other = await addTenant(fixture, 'secret-project')
    source.lists = { checks: many(3).slice(0, 1), channels: [] }
    await run({ project: other.project })
    source.lists = { checks: many(3), channels: [] }
    const { lines, status } = await run({ project: tenant.project })
    expect(status).toBe(3)
    expect(lines.join('\n')).toMatch(/refused +another organization has a check with its id$/m)
    expect(lines.join('\n')).not.toContain('secret-project')
    expect(lines.at(-1)).toBe('made 2, there already 0, refused 1, left out 0')
  })

  it('in another project of the organization is there already, with the name of that project', async () => {
    const other = await addProject(fixture, tenant, 'pay')
    await fixture.database.query(`update projects set name = 'Payments Team' where id = $1`, [other])
    source.lists = { checks: many(1), channels: [] }
    await run({ project: 'pay' })
    const { lines, status } = await run()
    expect(status).toBe(0)
    expect(lines[0]).toMatch(/there already +in project Payments Team \(pay\)$/)
    expect(await stored()).toEqual([])
  })
})

describe('the source', () => {
  it('is asked again after too many requests, as late as it says, and after its own faults', async () => {
    const checks = many(3)
    source.lists = { checks, channels: [] }
    source.faults = [{ status: 429, headers: { 'retry-after': '7' } }, null, { status: 500 }, { status: 502 }]
    const { status, waits, warnings } = await run()
    expect(status).toBe(0)
    expect(waits).toEqual([7_000, 1_000, 2_000])
    expect(warnings).toEqual([
      `${source.url}: it responds with 429; trying again in 7 s`,
      `${source.url}: it responds with 500; trying again in 1 s`,
      `${source.url}: it responds with 502; trying again in 2 s`,
    ])
    expect(await stored()).toHaveLength(3)
  })

  it('is asked again after a response that ends in its middle', async () => {
    source.lists = { checks: many(3), channels: [] }
    source.faults = ['cut']
    const { status, waits } = await run()
    expect([status, waits]).toEqual([0, [1_000]])
    expect(await stored()).toHaveLength(3)
  })

  it('is asked again after a connection that ends without a response, if it has responded before', async () => {
    source.lists = { checks: many(3), channels: [] }
    source.faults = [null, 'drop', 'drop']
    const { status, waits } = await run()
    expect([status, waits]).toEqual([0, [1_000, 2_000]])
    source.faults = ['drop']
    await expect(run()).rejects.toThrow(/: it cannot be reached \(.+\)$/)
    expect(source.faults).toEqual([])
  })

  it('is given up at once where nothing listens, or nothing that has TLS', async () => {
    const closed = await startFakeHealthchecks(RECORDED)
    await closed[Symbol.asyncDispose]()
    for (const url of [closed.url, closed.url.replace('127.0.0.1', 'localhost'), source.url.replace('http:', 'https:')])
      await expect(run({ url: new URL(url) })).rejects.toThrow(/: it cannot be reached \((?!fetch failed).+\)$/)
  })

  it('is given up after six tries', async () => {
    source.faults = Array.from({ length: 6 }, () => ({ status: 503 }))
    await expect(run()).rejects.toThrow(new SourceError(`${source.url}: it responds with 503, after 6 tries`))
    expect(source.faults).toEqual([])
  })

  it('may be older, or below a path', async () => {
    await using older = await startFakeHealthchecks({ checks: many(1), channels: [] }, { path: '/hc', version: 'v1' })
    expect((await run({ url: new URL(`${older.url}/`) })).status).toBe(0)
    expect(older.requests.at(-1)).toBe('/hc/api/v1/channels/')
  })

  it.for([
    ['rejects the key', { key: 'x' }, /rejects the key: give a read-write API key/],
    ['shows no ids for a read-only key', { key: READ_ONLY_KEY }, /rejects the key|read-only/],
    ['cannot be reached', { url: new URL('http://127.0.0.1:1/') }, /it cannot be reached \(.*\)$/],
  ] as const)('%s', async ([, given, message]) => {
    const error = await run(given).catch((reason) => reason)
    expect(error).toBeInstanceOf(SourceError)
    expect(error.message).toMatch(message)
    expect(error.message).not.toContain(READ_ONLY_KEY)
    expect(await stored()).toEqual([])
  })

  it('does not lead to another host, which would get the key', async () => {
    source.faults = [{ status: 302, headers: { location: 'https://elsewhere.example/api/v3/checks/' } }]
    await expect(run()).rejects.toThrow('responds with 302 to https://elsewhere.example: give that address')
  })

  it('is none that leads to no address', async () => {
    source.faults = [{ status: 301, headers: { location: 'https://[elsewhere/' } }]
    await expect(run()).rejects.toThrow(new SourceError(`${source.url} responds with 301`))
  })

  it.for([
    ['an object of another kind', { error: 'no' }],
    ['a list of texts', { checks: 'none' }],
  ] as const)('is none that responds with %s', async ([, lists]) => {
    source.lists = lists as unknown as Lists
    await expect(run()).rejects.toThrow('does not respond as healthchecks does')
  })

  it('has checks that cannot be read: each is refused', async () => {
    source.lists = { checks: [{ name: 'Odd', grace: 'long' }, { name: 'No id', grace: 60 }, ...many(1)], channels: [] }
    const { lines, status } = await run()
    expect(status).toBe(3)
    expect(lines[0]).toMatch(/^check 1 +refused +cannot be read: grace$/)
    expect(lines[1]).toMatch(/^No id +refused +has no uuid$/)
  })
})

describe('the project', () => {
  it('that is unknown is answered with the known ones', async () => {
    await addProject(fixture, tenant, 'billing')
    const error = await run({ project: 'nowhere' }).catch((reason) => reason)
    expect(error).toBeInstanceOf(UsageError)
    expect(error.message).toBe('there is no project nowhere; there are: billing, test')
  })

  it('of several organizations is chosen by its id', async () => {
    const other = await addTenant(fixture, 'test')
    source.lists = { checks: many(1), channels: [] }
    await expect(run()).rejects.toThrow('several organizations have a project test')
    await run({ project: other.project })
    expect(await stored(other.project)).toHaveLength(1)
  })
})
