import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseCron } from '../../../../src/domain/cron.ts'
import { yamlText } from '../../../../src/http/dashboard/pages/checks/literals.ts'
import { type SnippetCheck, type SnippetId, snippetsOf } from '../../../../src/http/dashboard/pages/checks/snippets.ts'

const CHECK: SnippetCheck = {
  pingUrl: 'https://ping.example.com/ping/0b1c3f6e-5a0e-4c39-9a56-5a0d6a6f3f10',
  slug: 'nightly-backup',
  kubernetes: null,
  periodSeconds: null,
  schedule: '0 2 * * *',
  timeZone: 'Europe/Berlin',
}
const snippet = (id: SnippetId, fields: Partial<SnippetCheck> = {}) =>
  snippetsOf({ ...CHECK, ...fields }).find((one) => one.id === id)!.text
const manifests = (fields: Partial<SnippetCheck> = {}) =>
  parseAllDocuments(snippet('kubernetes', fields), { version: '1.1' }).map((document) => document.toJS())

describe('a snippet', () => {
  /** An administrator sets PING_URL; a path may have any of these. */
  const HOSTILE = `https://ping.example.com/it's%20"$(id)\`id\`\\/${'%'}`

  it('quotes the URL for its language', () => {
    const [, shell] = /url=(.*)/.exec(snippet('bash', { pingUrl: HOSTILE })) ?? []
    expect(execFileSync('sh', ['-c', `printf %s ${shell}`], { encoding: 'utf8' })).toBe(HOSTILE)
    const [, python] = /URL = (.*)/.exec(snippet('python', { pingUrl: HOSTILE })) ?? []
    for (const [id, text] of [
      ['node', `const PING_URL = ${python}\n`],
      ['go', `const pingURL = ${python}\n`],
    ] as const)
      expect(snippet(id, { pingUrl: HOSTILE })).toContain(text)
    expect(JSON.parse(python!)).toBe(HOSTILE)
    expect(snippet('powershell', { pingUrl: HOSTILE })).toContain(`$Url = '${HOSTILE.replaceAll("'", "''")}'\n`)
    expect(manifests({ pingUrl: HOSTILE })[0].stringData.HEARTBEAT_URL).toBe(HOSTILE)
    expect(snippet('crontab', { pingUrl: HOSTILE })).not.toMatch(/[^\\]%/)
  })

  it.each([
    ['0 2 * * MON-FRI', '0 2 * * 1-5', 'names of days'],
    ['@daily', '0 0 * * *', 'a macro'],
    ['0 2 ? * ?', '0 2 * * *', 'question marks'],
    ['0 2 1 * 1', '0 2 1 * 1', 'a day or a weekday: one line, so that a day that is both counts once'],
    ['0 2 */2 * 1', '0 2 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * 1', 'a step, which some crons take for a star'],
  ])('has the schedule %s as %s in a crontab: %s', (schedule, expected) =>
    expect(snippet('crontab', { schedule })).toContain(`\n${expected} /path/to/your-job`),
  )

  it.each([
    ['0 2 * * 7', '0 2 * * 7', '0 2 * * 0', '7 is Sunday for cron alone'],
    ['0 2 * * MON-FRI', '0 2 * * MON-FRI', '0 2 * * MON-FRI', 'both read it alike'],
    [' @daily ', '@daily', '0 0 * * *', 'spaces beside a macro'],
    ['0 7 */100,1-7 * MON', '0 7 */100,1-7 * MON', '0 7 */100,1-7 * MON', 'a CronJob cannot ask for both days'],
  ])(
    'of a check that cron runs has the schedule %j as %s in a crontab, and as %s in a CronJob: %s',
    (schedule, line, inCronJob) => {
      const fields = { schedule, dialect: 'cron' } as const
      expect(snippet('crontab', fields)).toContain(`\n${line} /path/to/your-job`)
      expect(manifests(fields)[1].spec.schedule).toBe(inCronJob)
      const isBoth = schedule.includes('*/100')
      expect(snippet('kubernetes', fields).includes(' # cron: on days that match both')).toBe(isBoth)
    },
  )

  it('says in a crontab that its zone is that of the machine', () => {
    expect(snippet('crontab')).toMatch(/^# .*Europe\/Berlin/)
    expect(snippet('crontab', { schedule: null, periodSeconds: 3_600, timeZone: null })).toMatch(/^0 \* /)
  })

  it.each([
    [10, '* * * * *'],
    [900, '*/15 * * * *'],
    [5_400, '0 * * * *'],
    [82_800, '0 */12 * * *'],
    [86_400, '0 2 * * *'],
    [604_800, '0 2 * * 0'],
  ])('of a period of %i seconds runs by %s', (periodSeconds, expected) => {
    const fields = { schedule: null, timeZone: null, periodSeconds }
    expect(snippet('crontab', fields)).toContain(`${expected} /path`)
    expect(() => parseCron(manifests(fields)[1].spec.schedule, 'UTC', 'kubernetes')).not.toThrow()
  })

  it('of a check of Kubernetes reads the Secret of its HeartbeatCheck, and does not hold the URL', () => {
    const kubernetes = { namespace: 'shop', name: 'nightly-backup' }
    const [cronJob, ...more] = manifests({ kubernetes, slug: 'shop-nightly-backup' })
    expect(more).toEqual([])
    expect(cronJob.metadata).toEqual({ name: 'nightly-backup', namespace: 'shop' })
    expect(cronJob.spec).toMatchObject({ schedule: '0 2 * * *', timeZone: 'Europe/Berlin' })
    const [container] = cronJob.spec.jobTemplate.spec.template.spec.containers
    expect(container.envFrom[0].secretRef.name).toBe('nightly-backup-heartbeat')
    expect(snippet('kubernetes', { kubernetes })).not.toContain(CHECK.pingUrl)
  })

  it('of a check of Kubernetes says that its Secret is the default, and what to change where another object is published', () => {
    const kubernetes = { namespace: 'shop', name: 'nightly-backup' }
    const note = (fields: Partial<SnippetCheck>) =>
      snippetsOf({ ...CHECK, ...fields }).find(({ id }) => id === 'kubernetes')!.note
    expect(note({ kubernetes })).toMatch(/^By default .* the Secret nightly-backup-heartbeat, /)
    expect(note({ kubernetes, isFollowed: true })).toMatch(/publishes no ping URL by default .* set that to Secret: /)
    for (const text of [note({ kubernetes }), note({ kubernetes, isFollowed: true })])
      expect(text).toMatch(/another name.*configMapRef instead of secretRef.*another key.*None|None.*another name/)
    expect(note({})).not.toMatch(/publish/)
  })

  it.each(['a'.repeat(100), '_a_', '-', 'a_b'])('names the CronJob of the slug %s as Kubernetes allows', (slug) => {
    for (const { metadata } of manifests({ slug })) expect(metadata.name).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
    expect(manifests({ slug })[1].metadata.name.length).toBeLessThanOrEqual(52)
  })
})

describe('a text in a manifest', () => {
  it('is the same text to every reader, on one line, without characters that nobody sees', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 }),
      fc.constantFrom(
        '\n',
        '\u2028',
        '\u0085',
        '\u202e',
        '\ufeff',
        '\u{e0001}',
        '"',
        "'",
        '\\',
        '# ',
        ': ',
        '\u007f',
        '💾',
      ),
    )
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 20 }), (parts) => {
        const text = parts.join('')
        const written = yamlText(text)
        expect(written).toMatch(/^"[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*"$/u)
        for (const version of ['1.1', '1.2'] as const)
          expect(parseAllDocuments(`name: ${written}\n`, { version }).map((one) => one.toJS())).toEqual([
            { name: text },
          ])
      }),
    )
  })
})
