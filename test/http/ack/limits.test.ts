/** What strangers can make the service do by links: how often they may guess, and what is kept of a link. */

import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { FORGED_LINKS, LINK_REQUESTS } from '../../../src/http/limits.ts'
import type { OnRequest } from '../../../src/http/middleware/observe.ts'
import type { Log } from '../../../src/runtime/log.ts'
import { readText } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { findClientAddress, send, takeDown } from './fixture.ts'

const seen: Parameters<OnRequest>[] = []
const lines: string[] = []
const note = (fields: object, message: string) => lines.push(`${message} ${inspect(fields)}`)
const log = { debug: note, info: note, warn: note, error: note } as unknown as Log
const api = use(() => startTestApi({ findClientAddress, log, onRequest: (...request) => seen.push(request) }))
const FORGED = `/ack/${'A'.repeat(51)}`

const guess = async (from: string, count: number) => {
  const statuses: number[] = []
  for (let at = 0; at < count; at += 1) statuses.push((await send(api, FORGED, { from })).status)
  return statuses
}

it('an address may guess so often in a minute, and one in its network as well', async () => {
  const { address, network } = FORGED_LINKS
  expect(await guess('198.51.100.1', address)).toEqual(Array(address).fill(404))
  const { status, headers, text } = await send(api, FORGED, { form: {}, from: '198.51.100.1' })
  expect(status).toBe(429)
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(readText(text)).toContain('Too many links that are not valid: try again in')
  expect(await guess('198.51.100.2', 1)).toEqual([404])
  // An IPv6 network of 256 addresses of /64: the first half by one, the second by another.
  expect(await guess('2001:db8:0:1::1', address)).toEqual(Array(address).fill(404))
  expect(await guess('2001:db8:0:1::2', 1)).toEqual([429])
  expect(await guess('2001:db8:0:2::1', network - address)).toEqual(Array(network - address).fill(404))
  expect(await guess('2001:db8:0:3::1', 1)).toEqual([429])
  expect(await guess('2001:db8:1::1', 1)).toEqual([404])
})

it('a link of ours works beside them, and the guesses are forgotten after two minutes', async () => {
  const from = '198.51.100.3'
  const { path } = await takeDown(api)
  expect((await guess(from, FORGED_LINKS.address + 1)).at(-1)).toBe(429)
  expect((await send(api, path, { from })).status).toBe(200)
  expect((await send(api, path, { form: {}, from })).text).toContain('Thank you.')
  api.moveClock(120_000)
  expect(await guess(from, 1)).toEqual([404])
})

it('a link of ours works so often in a minute, from whatever address', async () => {
  const [{ path }, other] = [await takeDown(api), await takeDown(api)]
  for (let at = 0; at < LINK_REQUESTS; at += 1) {
    const init = at % 2 === 0 ? {} : { form: {} }
    expect((await send(api, path, { ...init, from: `10.9.0.${at}` })).status).toBe(200)
  }
  for (const init of [{}, { form: {} }]) {
    const { status, headers, text } = await send(api, path, { ...init, from: '10.9.1.1' })
    expect([status, headers.has('retry-after')]).toEqual([429, true])
    expect(readText(text)).toContain('Too many requests: try again in')
  }
  expect((await send(api, other.path)).status).toBe(200)
})

it('no log line, no label of a metric and no audit entry has a token', async () => {
  const { path, publicId } = await takeDown(api)
  seen.length = 0
  lines.length = 0
  await send(api, path)
  await send(api, path, { form: { name: 'Ada' } })
  await send(api, path, { method: 'PUT' })
  await api.ping(publicId)
  await send(api, path)
  await send(api, FORGED)
  await api.database.query('alter table checks rename to elsewhere')
  expect((await send(api, path)).status).toBe(500)
  await api.database.query('alter table elsewhere rename to checks')
  expect(seen.map(([route, method, status]) => [route, method, status])).toEqual(
    [
      ['GET', 200],
      ['POST', 200],
      ['PUT', 405],
      ['GET', 410],
      ['GET', 404],
      ['GET', 500],
    ].map((request) => ['/ack/{token}', ...request]),
  )
  expect(lines.length).toBeGreaterThanOrEqual(6)
  const token = path.slice('/ack/'.length)
  for (const kept of [lines.join(), JSON.stringify(api.audited), JSON.stringify(seen)]) {
    expect(kept).not.toContain(token)
    expect(kept).not.toContain(FORGED)
  }
})
