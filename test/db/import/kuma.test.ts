import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runImport } from '../../../src/import/run-import.ts'
import { SourceError } from '../../../src/import/source.ts'
import { MAX_SILENCES } from '../../../src/silences/create-silence.ts'
import { findPushed } from '../../../src/store/checks/push-tokens.ts'
import {
  type KumaMonitor,
  type KumaOptions,
  type KumaWindows,
  tokenOf,
  writeKumaDatabase,
} from '../../support/kuma-database.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { use } from '../../support/use.ts'
import { addProject, addTenant, NOW, useFixture } from '../checks/fixture.ts'

const fixture = useFixture()
let count = 0
const temp = use(makeTempFolder)
const { tenant } = fixture

function write(monitors: readonly KumaMonitor[], options?: KumaOptions) {
  count += 1
  const file = join(temp.path, `kuma-${count}.db`)
  return { file, close: writeKumaDatabase(file, monitors, options) }
}

async function run(file: string, given: { project?: string; isDryRun?: boolean } = {}) {
  const lines: string[] = []
  const { signal } = new AbortController()
  const status = await runImport(
    { source: 'uptime-kuma', file, project: tenant.project, isDryRun: false, ...given },
    {
      context: fixture.context,
      clock: { sleep: async () => {} },
      say: (line) => lines.push(line),
      warn: () => {},
      draw: null,
      signal,
    },
  )
  return { status, lines }
}

async function stored() {
  const { rows } = await fixture.database.query<{ name: string; publicId: string } & Record<string, unknown>>(
    `select c.name, c.slug, c.description, c.tags, c.public_id as "publicId", s.period_seconds as period, s.grace_seconds as grace, coalesce(s.failures_before_down, 1) as failures,
        s.remind_every_seconds as reminds, s.status, s.due_at as "dueAt"
      from checks c join check_states s on s.check_key = c.key where c.project_id = $1 order by c.key`,
    [tenant.project],
  )
  return rows
}

it('push monitors become checks: interval, retries, tags, and whether they are active', async () => {
  const { file } = write([
    {
      name: 'Nightly backup',
      interval: 3_600,
      maxretries: 3,
      retryInterval: 120,
      tags: ['prod', ['team', 'shop'], 'not a tag'],
    },
    { name: 'Sleeping', active: false, description: 'since May' },
  ])
  const { status, lines } = await run(file)
  expect(status).toBe(0)
  const [backup, sleeping] = await stored()
  expect(backup).toMatchObject({
    name: 'Nightly backup',
    slug: 'nightly-backup',
    tags: ['prod', 'team:shop'],
    period: 3_600,
    grace: 360,
    status: 0,
    dueAt: NOW + 3_960_000,
  })
  expect(sleeping).toMatchObject({ name: 'Sleeping', description: 'since May', status: 3, dueAt: null })
  expect(lines[0]).toMatch(/^Nightly backup +made +tags are left out: not a tag$/)
})

it.each([
  [20, 0, 60, 5],
  [20, 0, 0, 5],
  [60, 0, 60, 5],
  [101, 0, 60, 6],
  [86_400, 0, 60, 4_320],
  [86_400, 1, 60, 4_320],
  [60, 3, 30, 90],
  // Without an interval for retries it waits the usual one.
  [60, 3, 0, 180],
])(
  'of an interval of %i s with %i retries of %i s waits %i s longer',
  async (interval, maxretries, retryInterval, grace) => {
    await run(write([{ name: 'One', interval, maxretries, retryInterval }]).file)
    expect(await stored()).toMatchObject([{ period: interval, grace }])
  },
)

it.each([
  [0, 1, /^One +made$/],
  [3, 4, /^One +made$/],
  [99, 100, /^One +made$/],
  [100, 100, /^One +made +100 pushes of status=down alarm, and not one after 100 retries$/],
])('%i retries of a push of status=down are a threshold of %i failures', async (maxretries, failures, line) => {
  const { lines } = await run(write([{ name: 'One', maxretries }]).file)
  expect(await stored()).toMatchObject([{ failures }])
  expect(lines[0]).toMatch(line)
})

it.each([
  [60, 0, null, /^One +made$/],
  [60, 5, 300, /^One +made$/],
  [60, 4, 300, /^One +made +the time until an alarm is sent again of 240 s becomes 300 s$/],
  [86_400, 30, 2_592_000, /^One +made$/],
  [86_400, 31, 2_592_000, /^One +made +the time until an alarm is sent again of 2678400 s becomes 2592000 s$/],
])(
  'of an interval of %i s with a resend interval of %i it reminds every %s s',
  async (interval, resendInterval, reminds, line) => {
    const { lines } = await run(write([{ name: 'One', interval, resendInterval }]).file)
    expect(await stored()).toMatchObject([{ reminds }])
    expect(lines[0]).toMatch(line)
  },
)

describe('maintenance windows', () => {
  async function silences() {
    const { rows } = await fixture.database.query<Record<string, unknown>>(
      `select c.name as check, q.starts_at as "startsAt", q.ends_at as "endsAt", q.schedule, q.time_zone as "timeZone",
          q.duration_seconds as seconds, q.comment, q.created_by ->> 'name' as by
        from silences q left join checks c on c.id = q.check_id order by c.key, q.comment`,
    )
    return rows
  }
  /** A window as Uptime Kuma stores one that recurs. */
  const NIGHTLY = {
    strategy: 'recurring-interval',
    interval_day: 1,
    cron: '0 3 * * *',
    duration: 3_600,
    start_date: '2020-01-01 00:00:00',
  }

  it('become silences of their checks: once, or again and again, in their zone or that of the server', async () => {
    const monitors: KumaMonitor[] = [
      { name: 'Group', type: 'group', pushToken: null, maintenance: ['Nightly'] },
      { name: 'Backup', parent: 1, maintenance: ['Once', 'Nightly'] },
      { name: 'Report', maintenance: ['Sundays', 'Over'] },
    ]
    const windows = {
      Once: { start_date: '2026-07-01 03:00', end_date: '2026-07-01 05:30:00' },
      Nightly: NIGHTLY,
      Sundays: { ...NIGHTLY, strategy: 'recurring-weekday', cron: '30 2 * * 0', duration: 7_200, timezone: 'UTC' },
      Over: { start_date: '2026-01-01 03:00', end_date: '2026-06-01 05:00' },
    }
    const { file } = write(monitors, { windows, serverZone: 'Europe/Berlin' })
    const planned = await run(file, { isDryRun: true })
    expect(planned.lines.slice(1, 3)).toEqual([
      expect.stringMatching(/^Backup +made$/),
      expect.stringMatching(/^Report +made$/),
    ])
    expect(await silences()).toEqual([])
    expect((await run(file)).lines.slice(0, 3)).toEqual(planned.lines.slice(0, 3))
    const nightly = { startsAt: null, endsAt: null, schedule: '0 3 * * *', timeZone: 'Europe/Berlin', seconds: 3_600 }
    const by = 'the import'
    expect(await silences()).toEqual([
      { check: 'Backup', ...nightly, comment: 'Nightly', by },
      {
        check: 'Backup',
        startsAt: Date.parse('2026-07-01T01:00:00Z'),
        endsAt: Date.parse('2026-07-01T03:30:00Z'),
        schedule: null,
        timeZone: null,
        seconds: null,
        comment: 'Once',
        by,
      },
      { check: 'Report', ...nightly, schedule: '30 2 * * 0', timeZone: 'UTC', seconds: 7_200, comment: 'Sundays', by },
    ])
    expect((await run(file)).lines.slice(1, 3)).toEqual([
      expect.stringMatching(/^Backup +there already$/),
      expect.stringMatching(/^Report +there already$/),
    ])
    expect(await silences()).toHaveLength(3)
  })

  it.each<[KumaWindows[string], string]>([
    [{ strategy: 'manual' }, 'it has no end'],
    [{ ...NIGHTLY, active: 0 }, 'it is not active'],
    [{ ...NIGHTLY, interval_day: 2 }, 'it comes each 2 days'],
    [{ ...NIGHTLY, end_date: '2027-01-01 00:00' }, 'it recurs from a day, or until a day'],
    [{ ...NIGHTLY, start_date: '2027-01-01 00:00' }, 'it recurs from a day, or until a day'],
    [{ ...NIGHTLY, duration: 9 }, 'it has no schedule and duration that can be read here'],
    [{ ...NIGHTLY, duration: 2_592_001 }, 'it has no schedule and duration that can be read here'],
    [{ ...NIGHTLY, cron: '0 3 L * *' }, 'its schedule .*'],
    [{ ...NIGHTLY, cron: '0 3 30 2 *' }, 'its schedule names no real date'],
    [{ ...NIGHTLY, timezone: 'Mars/Base' }, 'it is in the unknown time zone Mars/Base'],
    [{ start_date: '2026-07-01 03:00', end_date: '2026-07-01 03:00' }, 'it has no times'],
  ])('that are none here are in the row: %j', async (window, why) => {
    const { lines } = await run(write([{ name: 'Backup', maintenance: ['W'] }], { windows: { W: window } }).file)
    expect(lines[0]).toMatch(new RegExp(`^Backup +made +is without its maintenance window W: ${why}$`))
    expect(await silences()).toEqual([])
  })

  it('are made with their check, or both are not: a later run makes both', async () => {
    const { file } = write([{ name: 'Backup', maintenance: ['W'] }], { windows: { W: NIGHTLY } })
    await fixture.database.query('alter table silences rename to silences_away')
    try {
      await expect(run(file)).rejects.toThrow()
    } finally {
      await fixture.database.query('alter table silences_away rename to silences')
    }
    expect(await stored()).toEqual([])
    await run(file)
    expect([await stored(), await silences()]).toMatchObject([[{ name: 'Backup' }], [{ check: 'Backup' }]])
  })

  it('are in the row where the project has too many silences', async () => {
    const windows = Object.fromEntries(Array.from({ length: MAX_SILENCES + 1 }, (_, place) => [`W${place}`, NIGHTLY]))
    const { lines } = await run(write([{ name: 'Backup', maintenance: Object.keys(windows) }], { windows }).file)
    expect(lines[0]).toMatch(/^Backup +made +is without the silence W100: the project has 100 silences .* maximum/)
    expect(await silences()).toHaveLength(MAX_SILENCES)
  })
})

it('what is left out of a monitor is in its row', async () => {
  const monitors: KumaMonitor[] = [
    { name: 'Plain' },
    { name: 'Windows', maintenance: ['Sunday night', 'Move'] },
    { name: 'Group', type: 'group', active: false, pushToken: null },
    { name: 'Inner', parent: 3 },
    { name: 'Paused', parent: 3, active: false },
    { name: 'Silent', type: 'group', pushToken: null, maintenance: ['Backups', 'Its own'], notifies: ['Mails'] },
    { name: 'Member', parent: 6, maintenance: ['Its own'] },
    { name: 'Notifies', notifies: ['Pager', 'Mails'] },
  ]
  const { lines } = await run(write(monitors, { notifications: ['Mails', 'Pager'] }).file)
  expect(lines).toEqual([
    expect.stringMatching(/^Plain +made$/),
    expect.stringMatching(
      /^Windows +made +is without its maintenance window Sunday night: it has no times; is without .* Move: it has no times$/,
    ),
    expect.stringMatching(/^Group +left out +/),
    expect.stringMatching(/^Inner +made +is paused, as its group Group is: .* resume it alone$/),
    expect.stringMatching(/^Paused +made$/),
    expect.stringMatching(/^Silent +left out +/),
    expect.stringMatching(
      /^Member +made +is without .* Its own: it has no times; is without .* Backups: it has no times$/,
    ),
    expect.stringMatching(
      /^Notifies +made +is without its notifications \(Mails, Pager\): it notifies all channels of the project$/,
    ),
    expect.stringMatching(/^notification Mails +left out +/),
    expect.stringMatching(/^notification Pager +left out +/),
    'made 6, there already 0, refused 0, left out 4',
  ])
})

it.each([
  ['tok+J/00==', 'its push token has the characters + / =: a token has 1 to 64 of A-Z, a-z, 0-9, - and _'],
  ['a b\u200bc', 'its push token has the characters U+0020 U+200B: '],
  ['x'.repeat(65), 'its push token has 65 characters: a token has 1 to 64'],
  ['', 'has no push token'],
])('the token %j is refused with what is wrong with it, and is not shown', async (pushToken, reason) => {
  const { status, lines } = await run(write([{ name: 'Odd', pushToken }]).file)
  expect(status).toBe(3)
  expect(lines[0]).toMatch(/^Odd +refused +/)
  expect(lines[0]).toContain(reason)
  if (pushToken !== '') expect(lines[0]).not.toContain(pushToken)
})

it('their tokens ping them', async () => {
  await run(write([{ name: 'One' }, { name: 'Two' }]).file)
  const found = await findPushed(fixture.database, [tokenOf(0), tokenOf(1)])
  expect([...found.values()]).toEqual((await stored()).map(({ publicId }) => publicId))
})

it('one in a group that is not active is paused', async () => {
  const group = { name: 'Group', type: 'group', active: false, pushToken: null }
  await run(write([group, { name: 'Inner', parent: 1 }]).file)
  expect(await stored()).toEqual([expect.objectContaining({ name: 'Inner', status: 3 })])
})

it('other monitors and notifications are left out, and do not count as refused', async () => {
  const { file } = write(
    [
      { name: 'Web', type: 'http', pushToken: null },
      { name: 'Reverse', upsideDown: true },
    ],
    { notifications: ['Mails'] },
  )
  const { status, lines } = await run(file)
  expect(status).toBe(0)
  expect(lines).toEqual([
    expect.stringMatching(/^Web +left out +is of type http: only push monitors are imported$/),
    expect.stringMatching(/^Reverse +left out +is upside down: /),
    expect.stringMatching(/^notification Mails +left out +/),
    'made 0, there already 0, refused 0, left out 3',
  ])
})

it('one without a token is refused', async () => {
  const { status, lines } = await run(write([{ name: 'Broken', pushToken: null }]).file)
  expect(status).toBe(3)
  expect(lines[0]).toMatch(/^Broken +refused +has no push token$/)
})

it('a second run adds what is new', async () => {
  await run(write([{ name: 'One' }]).file)
  const { lines } = await run(write([{ name: 'Renamed' }, { name: 'Two' }]).file)
  expect(lines).toEqual([
    expect.stringMatching(/^Renamed +there already$/),
    expect.stringMatching(/^Two +made$/),
    'made 1, there already 1, refused 0, left out 0',
  ])
  expect((await stored()).map(({ name }) => name)).toEqual(['One', 'Two'])
})

it('a token of another organization is refused', async () => {
  const other = await addTenant(fixture, 'other')
  const { file } = write([{ name: 'One' }])
  await run(file, { project: other.project })
  const { status, lines } = await run(file)
  expect(status).toBe(3)
  expect(lines[0]).toMatch(/^One +refused +another organization has a check with its id$/)
  expect(await stored()).toEqual([])
})

it('a token of another project of the organization is there already, with the name of that project', async () => {
  const project = await addProject(fixture, tenant, 'pay')
  await fixture.database.query(`update projects set name = 'Payments Team' where id = $1`, [project])
  const { file } = write([{ name: 'One' }])
  await run(file, { project })
  const { status, lines } = await run(file)
  expect(status).toBe(0)
  expect(lines[0]).toMatch(/^One +there already +in project Payments Team \(pay\)$/)
})

it('--dry-run writes nothing', async () => {
  const { lines } = await run(write([{ name: 'One' }]).file, { isDryRun: true })
  expect(lines[1]).toBe('made 1, there already 0, refused 0, left out 0')
  expect(await stored()).toEqual([])
})

it('the log beside the file counts, while Uptime Kuma runs', async () => {
  const { file, close } = write([{ name: 'One' }], { isOpen: true })
  try {
    expect((await run(file)).lines.at(-1)).toBe('made 1, there already 0, refused 0, left out 0')
  } finally {
    close()
  }
})

it('a file that is missing, or none of Uptime Kuma, is not imported', async () => {
  const missing = join(temp.path, 'missing.db')
  await expect(run(missing)).rejects.toThrow(new SourceError(`the file ${missing} is missing or cannot be read`))
  const text = join(temp.path, 'text.db')
  await copyFile(new URL(import.meta.url), text)
  for (const file of [text, temp.path]) {
    const error = await run(file).catch((reason) => reason)
    expect(error).toBeInstanceOf(SourceError)
    expect(error.message).toMatch(/cannot be read as a database of Uptime Kuma: .*$/)
  }
})
