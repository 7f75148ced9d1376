/**
 * docs/reference/interface.md, section by section and row by row: what a client that knows only that document relies on. Each title
 * begins with the section. What the document leaves open is tested elsewhere.
 * Section 4.
 */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { aTimestamp, aUuid, LONGEST_MS, useClient } from './client.ts'

const { app, call, read, ping, aCheck, lastPing, alertsOf } = useClient()

describe('4.1 Management API', () => {
  it('4.1 List checks: GET /checks with project_id gives an object with checks', async () => {
    const { id } = await aCheck()
    const { status, body } = await call('GET', `/checks?project_id=${app.projectId}`)
    expect(status).toBe(200)
    for (const check of body.checks) {
      expect(Object.keys(check)).toEqual(
        expect.arrayContaining(['id', 'name', 'slug', 'status', 'period_seconds', 'grace_seconds', 'last_ping_at']),
      )
    }
    expect(body.checks.map((check: { id: string }) => check.id)).toContain(id)
  })

  it('4.1 List checks: project_id is required, a UUID', async () => {
    expect((await call('GET', '/checks')).status).toBe(400)
    expect((await call('GET', '/checks?project_id=mine')).status).toBe(400)
  })

  it('4.1 Create check: POST /checks gives 201 and id, public_id, name, slug', async () => {
    const json = {
      project_id: app.projectId,
      name: 'Made',
      slug: 'made',
      period_seconds: 60,
      grace_seconds: 10,
      description: 'd',
    }
    const { status, headers, body } = await call('POST', '/checks', json)
    expect(status).toBe(201)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(body).toMatchObject({ id: aUuid, public_id: aUuid, name: 'Made', slug: 'made' })
  })

  it('4.1 Get check: GET /checks/{id} gives the fields of the check', async () => {
    const { id, publicId } = await aCheck({ name: 'Read', slug: 'read', period_seconds: 60, grace_seconds: 10 })
    const { status, body } = await call('GET', `/checks/${id}`)
    expect(status).toBe(200)
    const named = { id, public_id: publicId, name: 'Read', slug: 'read', period_seconds: 60, grace_seconds: 10 }
    expect(body).toMatchObject({ ...named, status: expect.any(String), created_at: aTimestamp })
    expect(body).toHaveProperty('last_ping_at')
    expect(body).toHaveProperty('last_start_at')
  })

  it('4.1 Update check: PUT /checks/{id} takes name, period_seconds, grace_seconds', async () => {
    const { id } = await aCheck()
    const changed = { name: 'Changed', period_seconds: 90, grace_seconds: 20 }
    expect((await call('PUT', `/checks/${id}`, changed)).status).toBeLessThan(300)
    expect(await read(`/checks/${id}`)).toMatchObject(changed)
  })

  it('4.1 Delete check: DELETE /checks/{id} gives 204 No Content', async () => {
    const { id } = await aCheck()
    expect(await call('DELETE', `/checks/${id}`)).toMatchObject({ status: 204, body: null })
  })

  it('4.1 Ping history: GET /checks/{id}/pings with limit gives an object with pings', async () => {
    const { id, publicId } = await aCheck()
    for (let sent = 0; sent < 3; sent += 1) await ping(publicId)
    expect((await read(`/checks/${id}/pings`)).pings).toHaveLength(3)
    expect((await read(`/checks/${id}/pings?limit=2`)).pings).toHaveLength(2)
  })

  it('4.1 rule 1: a check is addressed in management paths by id, and in ping paths by public_id', async () => {
    const { id, publicId } = await aCheck()
    expect((await call('GET', `/checks/${publicId}`)).status).toBe(404)
    expect(await ping(id)).toBe(404)
  })
})

describe('4.2 Ping API', () => {
  it.each([
    ['Success ping', '', { type: 'success', exit_code: 0 }, 'up'],
    ['Start ping', '/start', { type: 'start' }, 'new'],
    ['Fail ping', '/fail', { type: 'fail' }, 'down'],
    ['Exit code ping: 0 is completion without failure', '/0', { type: 'success', exit_code: 0 }, 'up'],
    ['Exit code ping: non-zero is treated as a failure', '/1', { type: 'fail', exit_code: 1 }, 'down'],
    ['Exit code ping: up to 255', '/255', { type: 'fail', exit_code: 255 }, 'down'],
  ])('4.2 %s, by GET and by POST', async (_, rest, record, status) => {
    for (const method of ['GET', 'POST']) {
      const { id, publicId } = await aCheck()
      expect(await ping(publicId, rest, { method })).toBe(200)
      expect(await lastPing(id)).toMatchObject(record)
      expect((await read(`/checks/${id}`)).status).toBe(status)
    }
  })

  it('4.2 rule 1: a successful ping returns 200, an unknown check 404, a body over the size limit 413', async () => {
    const { publicId } = await aCheck()
    expect(await ping(publicId)).toBe(200)
    expect(await ping(randomUUID())).toBe(404)
    expect(await ping(publicId, '', { method: 'POST', body: 'x'.repeat(10_241) })).toBe(413)
  })

  it('4.2 rule 2: sending the same ping several times is safe', async () => {
    const { id, publicId } = await aCheck()
    for (const [rest, status] of [
      ['', 'up'],
      ['/start', 'up'],
      ['/fail', 'down'],
    ] as const) {
      for (let time = 0; time < 3; time += 1) expect(await ping(publicId, rest)).toBe(200)
      expect((await read(`/checks/${id}`)).status).toBe(status)
    }
    expect(await alertsOf(id), 'one alert for all of them').toEqual(['failed'])
  })

  it.each(['', '/fail', '/0', '/7'])(
    '4.2 rule 3: a completion ping carries its duration by header or query: %j',
    async (rest) => {
      const { id, publicId } = await aCheck()
      for (const method of ['GET', 'POST']) {
        await ping(publicId, rest, { method, headers: { 'X-Service-Duration': '4321' } })
        expect((await lastPing(id)).duration_ms).toBe(4_321)
        await ping(publicId, `${rest}?duration=987`, { method })
        expect((await lastPing(id)).duration_ms).toBe(987)
      }
    },
  )

  it('4.2 rule 3: when provided, the service uses it, trusts it and does not verify it', async () => {
    const { id, publicId } = await aCheck()
    await ping(publicId, '/start')
    await ping(publicId, '', { headers: { 'X-Service-Duration': String(LONGEST_MS) } })
    expect((await lastPing(id)).duration_ms).toBe(LONGEST_MS)
  })

  it('4.2 rule 3: otherwise it calculates the duration from the start and end timestamps', async () => {
    const { id, publicId } = await aCheck()
    await ping(publicId, '/start')
    await ping(publicId)
    const [end, start] = (await read(`/checks/${id}/pings`)).pings
    const passedMs = Date.parse(end.created_at) - Date.parse(start.created_at)
    expect(Math.abs(end.duration_ms - passedMs)).toBeLessThanOrEqual(1)
  })

  it('4.2 rule 3: duration is accepted only on completion pings, not on start pings', async () => {
    const { id, publicId } = await aCheck()
    await ping(publicId, '/start', { headers: { 'X-Service-Duration': '5000' } })
    expect((await lastPing(id)).duration_ms).toBeNull()
    await ping(publicId)
    expect((await lastPing(id)).duration_ms).toBeLessThan(5_000)
  })

  it('4.2 rule 4: a POST may carry a text body of at most 10 KB; it is stored', async () => {
    const { publicId } = await aCheck()
    const body = 'x'.repeat(10_240)
    for (const rest of ['', '/start', '/fail', '/9']) {
      expect(await ping(publicId, rest, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body })).toBe(200)
    }
    expect((await app.storedPings(publicId)).map((stored) => String(stored.body))).toEqual(Array(4).fill(body))
  })

  it('4.2 rule 7: a response comes within the 10 seconds that clients wait', async () => {
    const { publicId } = await aCheck()
    const response = await fetch(`${app.pingUrl}/ping/${publicId}`, { signal: AbortSignal.timeout(10_000) })
    expect(response.status).toBe(200)
  })
})
