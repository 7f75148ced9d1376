/** Pages in states that are rare: hostile names, a thousand checks, a keyboard alone, three users, no database. */

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { findViolations } from './support/axe.ts'
import { findOverflow } from './support/browser.ts'
import { openStage, type Stage } from './support/stage.ts'

let stage: Stage
let proxy: TcpProxy
beforeAll(async () => {
  stage = await openStage({ days: 1 }, async (url) => {
    const proxied = new URL(url)
    proxy = await startTcpProxy(Number(proxied.port))
    proxied.port = String(proxy.port)
    return proxied.href
  })
}, 120_000)
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]()
  await proxy?.close()
})

const HOSTILE = [
  '<script>document.title="taken"</script>',
  '"><img src=x onerror=alert(1)>',
  "'); drop table checks; --",
  '\u202eevil.exe\u2066',
  '日本語の夜間バックアップ',
  'نسخة احتياطية ليلية',
  'W'.repeat(100),
  '\u{1f4be}'.repeat(100),
]

describe('texts of jobs and keys', () => {
  it.each(HOSTILE)('%j stays text on every page of its check', async (name) => {
    const { id, publicId } = await stage.app.createCheck({ name, description: name, tags: ['a'] })
    await fetch(`${stage.app.pingUrl}/ping/${publicId}/fail`, { method: 'POST', body: `${name}\n${'x'.repeat(2_000)}` })
    await using watched = await stage.open('/login', { width: 360 })
    const { page, faults } = watched
    let dialogs = 0
    page.on('dialog', (dialog) => {
      dialogs += 1
      void dialog.dismiss()
    })
    for (const path of [
      `/checks?q=${encodeURIComponent(name)}`,
      `/checks/${id}`,
      `/checks/${id}/how`,
      `/checks/${id}/edit`,
    ]) {
      await page.goto(path)
      // The body of the page, or a field of the form.
      const text = `${await page.locator('main').textContent()} ${await page
        .locator('input[name=name]')
        .all()
        .then((all) => all[0]?.inputValue())}`
      expect(text, path).toContain(name.replaceAll(/[\u202e\u2066]/g, '').slice(0, 20))
      expect(await page.title()).not.toBe('taken')
      expect(await findOverflow(page), path).toEqual([])
    }
    expect(dialogs).toBe(0)
    expect(faults).toEqual([])
  })
})

describe('a check that follows a CronJob', () => {
  const job = `hostile-${'j'.repeat(44)}`
  let id: string

  /** Its run hangs, with texts of the cluster that fit nowhere; its cluster was not seen for a while. */
  beforeAll(async () => {
    const { database, createCheck } = stage.app
    ;({ id } = await createCheck({ name: 'Hangs' }))
    const detail = `Job ${job} has run for longer than 60 s (the default) <script>document.title="taken"</script> ${'W'.repeat(900)}`
    const lastRun = { job, startTime: '2026-11-23T02:00:00Z', completionTime: null, outcome: 'Running' }
    await database.query(
      `with found as (update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = 'payments',
          kubernetes_name = 'hangs', kubernetes_suspend = false where id = $1 returning key),
        state as (update check_states s set job_area = 'default', status = 2, reason = 'overran', expected_at = null, due_at = null,
            runs = '[{"id": "run", "startedAt": 1780000000000, "deadlineAt": 1780000060000}]'
          from found where s.check_key = found.key),
        source as (insert into cron_jobs (check_key, name, jobs, last_run) select key, 'hangs', $5::jsonb, $3::jsonb from found),
        seen as (insert into seen_areas (area, cluster, seen_at) values ('default', 'default', now() - interval '134 seconds'))
      insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, detail, job)
        select 'ffffffff-0000-7000-8000-000000000000', key, now(), now(), 1, 2, 'overran', $2, $4 from found`,
      [
        id,
        detail,
        JSON.stringify({ exitCode: null, reason: null, message: null, ...lastRun }),
        job,
        JSON.stringify({ run: job }),
      ],
    )
  })
  afterAll(async () => {
    await stage.app.database.query('delete from seen_areas')
    await stage.app.database.query('delete from checks where id = $1', [id])
  })

  it.each([1_280, 360].flatMap((width) => (['light', 'dark'] as const).map((theme) => ({ width, theme }))))(
    'fits, with what to do and a cluster that is not seen: %j',
    async (look) => {
      await using watched = await stage.open('/checks?q=Hangs', look)
      const { page, faults } = watched
      for (const [path, ...texts] of [
        ['/checks?q=Hangs', 'Some checks are not evaluated.', `: Job ${job} has run for longer than 60 s`],
        [`/checks/${id}`, 'This check is not evaluated.', `kubectl delete job ${job} -n payments`],
        ['/service', 'The Jobs of the cluster default have not been seen since'],
      ] as const) {
        await page.goto(path)
        const shown = (await page.locator('main').textContent())!.replaceAll(/\s+/g, ' ')
        for (const text of texts) expect(shown, path).toContain(text)
        expect(await page.title()).not.toBe('taken')
        expect(await findOverflow(page), path).toEqual([])
        expect(await findViolations(page), path).toEqual([])
      }
      expect(faults).toEqual([])
    },
  )
})

it('a thousand checks are pages of a hundred, which fit and are as quick', async () => {
  const { database, projectId } = stage.app
  await database.query(
    `with made as (
      insert into checks (id, public_id, project_id, name, slug, created_at, updated_at)
      select gen_random_uuid(), gen_random_uuid(), $1, 'Job ' || n, 'job-' || n, now(), now() from generate_series(1, 1000) n
      returning key
    )
    insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at)
      select key, 3600, 300, 0, now(), now() from made`,
    [projectId],
  )
  await using watched = await stage.open('/checks?q=Job', { width: 360 })
  const { page, faults } = watched
  expect(await page.locator('.checks tbody tr').count()).toBe(100)
  expect(await findOverflow(page)).toEqual([])
  await page.getByText('Next 100').click()
  await page.waitForURL('**cursor=**')
  expect(await page.locator('.checks tbody tr').count()).toBe(100)
  expect(await findViolations(page)).toEqual([])
  expect(faults).toEqual([])
})

/** What has the focus, and whether one sees it. */
const readFocus = (page: Page) =>
  page.evaluate(`(() => {
    const element = document.activeElement
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    const { width, height } = element.getBoundingClientRect()
    const isMarked = (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none'
    return { text: (element.textContent || element.name || '').trim(), isVisible: isMarked && width > 0 && height > 0 }
  })()`) as Promise<{ text: string; isVisible: boolean }>

it('a keyboard alone goes from the skip link over the sections to a check, and each stop is visible', async () => {
  await using watched = await stage.open('/checks?q=Invoice')
  const { page } = watched
  const seen: string[] = []
  for (let stop = 0; stop < 40 && !seen.includes('Invoice export'); stop += 1) {
    await page.keyboard.press('Tab')
    const { text, isVisible } = await readFocus(page)
    expect(isVisible, text).toBe(true)
    seen.push(text)
  }
  expect(seen[0]).toBe('Skip to the content')
  expect(seen).toEqual(expect.arrayContaining(['Checks', 'Channels', 'Settings', 'Log out', 'Invoice export']))
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Invoice export' }).waitFor()
})

it('three users at once see the same change, each with the rights of its own', async () => {
  const { id, publicId } = stage.demo.checks.get('Metrics roll-up')!
  const open = (who: 'admin' | 'write' | 'read') => stage.open(`/checks/${id}`, {}, who)
  await using admin = await open('admin')
  await using writer = await open('write')
  await using reader = await open('read')
  const all = [admin, writer, reader]
  await admin.page.waitForTimeout(1_200)
  await writer.page.getByRole('button', { name: 'Pause' }).click()
  for (const { page } of all) await page.locator('.check-head .status').getByText('Paused').waitFor()
  await admin.page.getByRole('button', { name: 'Resume' }).click()
  for (const { page } of all) await page.locator('.check-head .status').getByText('New').waitFor()

  expect(await writer.page.content()).toContain(publicId)
  expect(await reader.page.content()).not.toContain(publicId)
  expect(await reader.page.locator('main').getByRole('button').count()).toBe(0)
  // A filter works without a button.
  await reader.page.goto('/checks')
  expect(await reader.page.locator('main').getByRole('button').count()).toBe(0)
  await reader.page.getByLabel('Order').selectOption('name')
  await reader.page.waitForURL('**/checks?*sort=name*')
  await reader.page.getByLabel('Name or slug').fill('roll-up')
  await reader.page.getByLabel('Name or slug').press('Enter')
  await reader.page.waitForURL('**/checks?*q=roll-up*')
  expect((await reader.page.goto(`/checks/${id}/edit`))!.status()).toBe(403)
  expect((await writer.page.goto('/channels/new'))!.status()).toBe(403)
})

it('without its database the service says so, on open pages and on new ones, and both recover by themselves', async () => {
  await using open = await stage.open('/checks')
  await using other = await stage.open('/checks')
  await open.page.waitForTimeout(1_200)
  proxy.refuse()
  proxy.reset()
  // Otherwise it would look after 25 seconds.
  await open.page.evaluate('dispatchEvent(new Event("online"))')
  await open.page.locator('#connection').waitFor({ timeout: 20_000 })
  expect((await other.page.goto('/checks', { timeout: 30_000 }))!.status()).toBe(503)
  await other.page.getByRole('heading', { name: 'The database does not respond' }).waitFor()
  expect(await other.page.locator('main').textContent()).toContain('loads again by itself')
  await proxy.accept()
  await other.page.getByRole('heading', { name: 'Checks' }).waitFor({ timeout: 30_000 })
  await open.page.locator('#connection').waitFor({ state: 'hidden', timeout: 40_000 })
})
