/** The ping API responds to any request and never with 500, and stores pings afterwards. */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { exchange, writeHead } from '../../support/http.ts'
import { chooseSeed, type Random } from '../../support/random.ts'
import { mutateTargetPart, mutateText, TEXTS } from './mutations.ts'
import { METHODS, writeRequest } from './requests.ts'
import { fuzz } from './run.ts'
import { startWatchedApp, type WatchedApp } from './watched-app.ts'

const REQUESTS = 3_000
/** More than there are checks: others are created. */
const JOBS = Array.from({ length: 60 }, (_, job) => job)
const RESTS = ['', '/', '/start', '/fail', '/log', '/0', '/1', '/255', '/256', '/-1', '/start/', '/x', '//', '/1.5']
const NUMBERS = [
  '0',
  '1',
  '604800000',
  '604800001',
  '-1',
  '1.5',
  '',
  'x',
  '9'.repeat(30),
  '１',
  '1, 2',
  '+1',
  '1e3',
  '\t1',
]
const LENGTHS = [0, 1, 5, 1_000, 10_239, 10_240, 10_241, 20_000, 70_000]

let watched: WatchedApp
let checks: { id: string; publicId: string }[]
let pingKey: string
beforeAll(async () => {
  watched = await startWatchedApp()
  const { app } = watched
  checks = await Promise.all(
    Array.from({ length: 8 }, (_, job) => app.createCheck({ name: `Job ${job}`, slug: `job-${job}` })),
  )
  pingKey = (await app.client.post(`/projects/${app.projectId}/ping-key`)).body.ping_key
  await app.database.query(`insert into push_tokens (token, check_key) select slug, key from checks`)
})
afterAll(() => watched.app.close())

function makeTarget(random: Random, rids: readonly string[]): string {
  const publicId = random.chance(0.8) ? random.pick(checks).publicId : random.pick(rids)
  const id = random.chance(0.1) ? mutateTargetPart(random, publicId) : publicId
  const number = random.pick(JOBS)
  const address = random.pick([
    ...[`/ping/${id}`, `/ping/${id}`, `/ping/${id}`, `/${id}`],
    `/ping/${random.chance(0.1) ? mutateTargetPart(random, pingKey) : pingKey}/job-${number}`,
    `/${pingKey}/${random.chance(0.2) ? mutateTargetPart(random, 'job-1') : 'job-1'}`,
    `/api/push/${random.chance(0.2) ? mutateTargetPart(random, 'job-1') : 'job-1'}`,
  ])
  const rest = random.chance(0.1) ? `/${mutateTargetPart(random, 'start')}` : random.pick(RESTS)
  const parameters: string[] = []
  if (random.chance(0.2)) parameters.push(random.pick(['create=1', 'status=down', 'status=up', 'msg=x&ping=5']))
  const value = (usual: string) => (random.chance(0.3) ? mutateTargetPart(random, usual) : usual)
  if (random.chance(0.3)) parameters.push(`rid=${value(random.pick(rids))}`)
  if (random.chance(0.3)) parameters.push(`duration=${value(encodeURIComponent(random.pick(NUMBERS)))}`)
  if (random.chance(0.2)) parameters.push(mutateTargetPart(random, 'a=b'))
  if (parameters.length > 0 && random.chance(0.1)) parameters.push(parameters[0]!)
  const prefix = random.chance(0.03) ? random.pick(['http://x', 'http://[', 'http://a:b', '/', '']) : ''
  return `${prefix}${address}${rest}${parameters.length > 0 || random.chance(0.05) ? '?' : ''}${parameters.join('&')}`
}

function makeHeaders(random: Random): string[] {
  const texts = [...TEXTS.filter((text) => text.length < 5_000), random.word(20)].map((text) =>
    Buffer.from(text).toString('latin1'),
  )
  const any = () => random.pick(texts).replaceAll(/[\r\n\0]/g, ' ')
  return [
    ...(random.chance(0.3) ? [`X-Service-Duration: ${Buffer.from(random.pick(NUMBERS)).toString('latin1')}`] : []),
    ...(random.chance(0.05) ? [`X-Service-Duration: ${any()}`] : []),
    ...(random.chance(0.1) ? [`Content-Encoding: ${random.pick(['gzip', 'identity', '', 'br', any()])}`] : []),
    ...(random.chance(0.2)
      ? [`Accept: ${random.pick(['*/*', 'application/json', 'text/html;q=0', ';;,', any()])}`]
      : []),
    ...(random.chance(0.1) ? [`Expect: ${random.pick(['100-continue', '100-Continue, x', 'x', any()])}`] : []),
    ...(random.chance(0.1) ? [`Connection: ${random.pick(['close', 'keep-alive', 'Upgrade', any()])}`] : []),
    ...(random.chance(0.05) ? ['Upgrade: websocket'] : []),
    ...(random.chance(0.1) ? [`Content-Type: ${any()}`] : []),
    ...(random.chance(0.1)
      ? [`${random.pick(['X-Any', 'Cookie', 'Authorization', 'Range', 'Via', 'Host'])}: ${any()}`]
      : []),
  ]
}

it('the ping API responds to every random request without 500, and still works afterwards', {
  timeout: 120_000,
}, async () => {
  const rids = Array.from({ length: 20 }, () => randomUUID())
  const statuses = await fuzz({
    url: watched.app.pingUrl,
    seed: chooseSeed(),
    requests: REQUESTS,
    make(random) {
      const method = random.chance(0.85) ? random.pick(['GET', 'POST', 'POST', 'HEAD']) : random.pick(METHODS)
      const body = random.chance(method === 'POST' ? 0.8 : 0.1) ? makeBody(random) : null
      return writeRequest(random, { method, target: makeTarget(random, rids), headers: makeHeaders(random), body })
    },
    judge({ status, text, headers }, method) {
      expect([200, 201, 204, 400, 404, 405, 413, 415, 431]).toContain(status)
      if (method === 'HEAD' || status === 204) return
      if (status === 200) expect(['OK', '{"ok":true}']).toContain(text)
      else if (status === 201) expect(text).toBe('Created')
      else if (headers['content-type']?.startsWith('application/json')) {
        const { error, msg } = JSON.parse(text)
        expect(error ?? msg).toMatch(/./)
      } else expect(text).toMatch(/^[\x20-\x7e]+$/)
    },
  })
  for (const status of [200, 201, 400, 404, 405, 413, 415])
    expect(statuses.get(status), `none was ${status}`).toBeGreaterThan(0)

  await watched.expectWell()
  for (const { id, publicId } of checks) {
    expect((await exchange(watched.app.pingUrl, writeHead('GET', `/ping/${publicId}`))).status).toBe(200)
    const { status, body } = await watched.app.client.get(`/checks/${id}/pings?limit=1000`)
    expect({ status, newest: body.pings[0].type }).toEqual({ status: 200, newest: 'success' })
  }
})

function makeBody(random: Random): Buffer {
  const length = random.pick(LENGTHS)
  if (random.chance(0.3)) return Buffer.from(mutateText(random, 'disk full\n')).subarray(0, 20_000)
  return length > 2_000 ? Buffer.alloc(length, random.bytes(64)) : random.bytes(length)
}
