/** The places and the turns of lists: what many of them at once, and clients that do not read, cost the others. */

import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AppError } from '../../../src/domain/errors.ts'
import { createLists } from '../../../src/http/api/lists.ts'
import { LISTS } from '../../../src/http/limits.ts'
import { openUnread as open, openConnection, writeHead } from '../../support/http.ts'
import { eventually } from '../../support/until.ts'

/** By path: reads a list. The query is the organization. Each list of `unread` is larger than what the kernel takes. */
async function start(reads: Record<string, () => Promise<string>>, options: Parameters<typeof createLists>[0] = {}) {
  const lists = createLists(options)
  const counts = { begun: 0, read: 0, closed: 0 }
  const server = createServer(async ({ url = '' }, response) => {
    const [path, organization = ''] = url.slice(1).split('?')
    counts.begun += 1
    response.once('close', () => {
      counts.closed += 1
    })
    try {
      await lists.hold(response, organization)
      const text = await lists.inTurn(organization, async () => {
        counts.read += 1
        return reads[path!]!()
      })
      response.end(text)
    } catch (error) {
      const { code, message, retryAfterSeconds } = error as AppError
      response.writeHead(code === 'unavailable' ? 503 : 500, { 'Retry-After': `${retryAfterSeconds}` }).end(message)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts }
}

const UNREAD = 'x'.repeat(20_000_000)
const list = async () => 'list'
const unread = async () => UNREAD
const textOf = async (response: Response) => [response.status, await response.text()]

describe('lists', () => {
  it('are read two at a time, one of an organization: its slow statements do not delay those of another', async () => {
    const gate = Promise.withResolvers<string>()
    const { url, counts } = await start({ slow: () => gate.promise, list })
    const slow = [fetch(`${url}/slow?a`), fetch(`${url}/slow?a`)]
    await eventually('two lists are begun', () => counts.begun === 2)
    expect(await textOf(await fetch(`${url}/list?b`))).toEqual([200, 'list'])
    expect(counts.read).toBe(2)
    const others = [fetch(`${url}/slow?c`), fetch(`${url}/slow?d`)]
    await eventually('five lists are begun', () => counts.begun === 5)
    expect(counts.read).toBe(3)
    gate.resolve('slow')
    for (const sent of await Promise.all([...slow, ...others])) expect(await textOf(sent)).toEqual([200, 'slow'])
  })

  it('that wait too long for their turn are 503, with Retry-After', async () => {
    const gate = Promise.withResolvers<string>()
    const { url, counts } = await start({ slow: () => gate.promise, list }, { waitMs: 50 })
    const slow = fetch(`${url}/slow?a`)
    await eventually('one list is read', () => counts.read === 1)
    const late = await fetch(`${url}/list?a`)
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await late.text()).toBe('too many lists are being read at the moment; try again in 5 s')
    gate.resolve('slow')
    expect(await textOf(await slow)).toEqual([200, 'slow'])
    expect((await fetch(`${url}/list?a`)).status).toBe(200)
  })

  it(`that are not read yet hold ${LISTS.perKey} places of their organization, and ${LISTS.atOnce} in all`, async () => {
    const { url } = await start({ unread, list }, { waitMs: 50 })
    const fill = async (organization: string) => {
      for (let count = 0; count < LISTS.perKey; count += 1) await open(`${url}/unread?${organization}`)
    }
    await fill('a')
    expect((await fetch(`${url}/list?a`)).status).toBe(503)
    for (const organization of ['b', 'c']) await fill(organization)
    expect((await fetch(`${url}/list?d`)).status).toBe(200)
    await fill('d')
    expect((await fetch(`${url}/list?e`)).status).toBe(503)
  })

  it('give their places back when their clients leave, and when reading fails', async () => {
    const fails = async () => {
      throw new AppError('not_found', 'no such list')
    }
    const { url } = await start({ unread, fails, list }, { waitMs: 2_000 })
    for (let round = 0; round < 3; round += 1) {
      for (let count = 0; count < LISTS.perKey; count += 1) expect((await fetch(`${url}/fails?a`)).status).toBe(500)
      const sent = await Promise.all(Array.from({ length: LISTS.perKey }, () => open(`${url}/unread?a`)))
      for (const response of sent) response.destroy()
    }
    expect((await fetch(`${url}/list?a`)).status).toBe(200)
  })

  it('take no place for a client that has left while it waited', async () => {
    const { url, counts } = await start({ unread, list }, { waitMs: 10_000 })
    const sent = await Promise.all(Array.from({ length: LISTS.perKey }, () => open(`${url}/unread?a`)))
    const leaving = new AbortController()
    const waiting = Array.from({ length: LISTS.perKey }, () => fetch(`${url}/list?a`, { signal: leaving.signal }))
    await eventually('each turn of both keys is taken', () => counts.begun === 2 * LISTS.perKey)
    leaving.abort()
    await Promise.allSettled(waiting)
    await eventually('the lists of the one who left are closed', () => counts.closed === LISTS.perKey)
    for (const response of sent) response.destroy()
    expect((await fetch(`${url}/list?a`)).status).toBe(200)
  })

  it('end when their clients need too long, also those that wait behind another response', async () => {
    const { url, counts } = await start({ unread, list }, { waitMs: 2_000, listMs: 300 })
    const connection = openConnection(url)
    connection.socket.pause()
    connection.send(...['unread', 'list', 'list', 'list'].map((path) => writeHead('GET', `/${path}?a`)))
    await eventually('four lists are read', () => counts.read === 4)
    expect((await fetch(`${url}/list?a`)).status).toBe(200)
    const sent: IncomingMessage[] = []
    for (let count = 0; count < LISTS.perKey; count += 1) sent.push(await open(`${url}/unread?a`))
    expect((await fetch(`${url}/list?a`)).status).toBe(200)
    await expect(sent[0]!.toArray()).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
})
