/**
 * docs/reference/interface.md, section by section and row by row: what a client that knows only that document relies on. Each title
 * begins with the section. What the document leaves open is tested elsewhere.
 * Sections 1 to 3.
 */

import { beforeAll, describe, expect, it } from 'vitest'
import { aTimestamp, aUuid, useClient } from './client.ts'

const { app, call, read, ping, aCheck, alertsOf, letPass, letServiceLook } = useClient()

describe('1. What the service does', () => {
  it('1: a job reports with a success ping, a start ping, a fail ping, or a ping carrying an exit code', async () => {
    const { publicId } = await aCheck()
    for (const rest of ['', '/start', '/fail', '/3']) expect(await ping(publicId, rest)).toBe(200)
  })

  it('1: a check has a period and a grace time; alerts for missed pings are generated for active checks', async () => {
    const [missed, inGrace, inTime] = await Promise.all(
      [1, 2, 3].map(() => aCheck({ period_seconds: 60, grace_seconds: 30 })),
    )
    for (const [check, seconds] of [
      [missed!, 91],
      [inGrace!, 75],
      [inTime!, 45],
    ] as const) {
      await ping(check.publicId)
      await letPass(check.id, seconds)
    }
    await letServiceLook()
    expect(await alertsOf(missed!.id)).toEqual(['missed'])
    expect(await alertsOf(inGrace!.id)).toEqual([])
    expect(await alertsOf(inTime!.id)).toEqual([])
  })

  it('1: a paused check does not generate alerts for missed pings', async () => {
    const { id, publicId } = await aCheck({ period_seconds: 10, grace_seconds: 0 })
    await ping(publicId)
    await call('PATCH', `/checks/${id}/pause`)
    await letPass(id, 1_000)
    await letServiceLook()
    expect(await alertsOf(id)).toEqual([])
  })

  it('1: a POST ping may carry a text body with error details; it is stored and included in alerts', async () => {
    const { id, publicId } = await aCheck()
    await ping(publicId, '/fail', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'disk full' })
    expect(await alertsOf(id)).toEqual(['failed'])
    const { rows } = await app.database.query<{ body: Buffer }>(
      `select b.body from events e join flips f on f.id = e.flip_id join ping_bodies b on b.ping_id = f.ping_id
      join checks c on c.key = e.check_key where c.id = $1`,
      [id],
    )
    expect(rows.map(({ body }) => String(body))).toEqual(['disk full'])
  })

  it('1: the management API creates, reads, updates, deletes, pauses and resumes checks, and reads the ping history', async () => {
    const { id } = await aCheck()
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PUT', '', { name: 'Renamed', period_seconds: 60, grace_seconds: 60 }],
      ['PATCH', '/pause', undefined],
      ['PATCH', '/resume', undefined],
      ['GET', '/pings', undefined],
      ['DELETE', '', undefined],
    ] as const) {
      const { status } = await call(method, `/checks/${id}${path}`, body)
      expect(status, `${method} ${path}`).toBeLessThan(300)
    }
    expect((await call('GET', `/checks/${id}`)).status).toBe(404)
  })

  it('1: checks belong to a project', async () => {
    const { body: other } = await call('POST', '/projects', { name: 'Other' })
    const { id } = await aCheck({ project_id: other.id })
    const idsOf = async (project: string) =>
      (await read(`/checks?project_id=${project}`)).checks.map((check: { id: string }) => check.id)
    expect(await idsOf(other.id)).toEqual([id])
    expect(await idsOf(app.projectId)).not.toContain(id)
  })

  it('1: {base_url} is the management API base and includes the version prefix; {ping_url} is the ping host', async () => {
    expect(app.apiUrl).toMatch(/\/api\/v1$/)
    expect(new URL(app.pingUrl).pathname).toBe('/')
    expect(app.pingUrl).not.toMatch(/\/$/)
  })
})

describe('2. Resources and their fields', () => {
  const request = { name: 'Full', slug: 'full', period_seconds: 120, grace_seconds: 30, description: 'All of it' }
  let created: Record<string, unknown>
  let listed: Record<string, unknown>
  let got: Record<string, unknown>
  let pings: Record<string, unknown>[]

  beforeAll(async () => {
    created = (await call('POST', '/checks', { project_id: app.projectId, ...request })).body
    const publicId = created.public_id as string
    await ping(publicId, '/start')
    await ping(publicId, '', { headers: { 'X-Service-Duration': '1234' } })
    got = await read(`/checks/${created.id}`)
    listed = (await read(`/checks?project_id=${app.projectId}`)).checks.find(
      (check: { id: string }) => check.id === created.id,
    )
    pings = (await read(`/checks/${created.id}/pings`)).pings
  })

  it.each([
    ['id', aUuid, ['list', 'create', 'get']],
    ['public_id', aUuid, ['create', 'get']],
    ['name', 'Full', ['list', 'create', 'get']],
    ['slug', 'full', ['list', 'create', 'get']],
    ['status', 'up', ['list', 'get']],
    ['period_seconds', 120, ['list', 'get']],
    ['grace_seconds', 30, ['list', 'get']],
    ['last_ping_at', aTimestamp, ['list', 'get']],
    ['last_start_at', aTimestamp, ['get']],
    ['created_at', aTimestamp, ['get']],
  ])('2 Check: %s appears where the table says', (field, value, places) => {
    const answers: Record<string, Record<string, unknown>> = { list: listed, create: created, get: got }
    for (const place of places) expect(answers[place], place).toHaveProperty(field, value)
  })

  it('2 Check: id and public_id are the same wherever they appear, and not each other', () => {
    expect(got.id).toBe(created.id)
    expect(got.public_id).toBe(created.public_id)
    expect(created.id).not.toBe(created.public_id)
  })

  it.each([
    ['id', aUuid],
    ['type', 'success'],
    ['exit_code', 0],
    ['created_at', aTimestamp],
    ['duration_ms', 1234],
  ])('2 Ping record: %s', (field, value) => {
    const success = pings.find(({ type }) => type === 'success')
    expect(success).toHaveProperty(field, value)
  })
})

describe('3. States and transitions', () => {
  it('3: up is a check status, that of a check whose job succeeds', async () => {
    const { id, publicId } = await aCheck()
    await ping(publicId)
    expect((await read(`/checks/${id}`)).status).toBe('up')
  })

  it('3: the pause operation is PATCH /checks/{id}/pause, the resume operation is PATCH /checks/{id}/resume', async () => {
    const { id, publicId } = await aCheck({ period_seconds: 10, grace_seconds: 0 })
    await ping(publicId)
    expect((await call('PATCH', `/checks/${id}/pause`)).status).toBeLessThan(300)
    await letPass(id, 1_000)
    await letServiceLook()
    expect(await alertsOf(id)).toEqual([])
    expect((await call('PATCH', `/checks/${id}/resume`)).status).toBeLessThan(300)
    await letPass(id, 1_000)
    await letServiceLook()
    expect(await alertsOf(id), 'active again').toEqual(['missed'])
  })
})
