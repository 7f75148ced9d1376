/** What a job gets while the database is unavailable (design, section 10). The faults themselves are in test/crash/spool.test.ts. */

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { exchange, writeHead } from '../../support/http.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import { addPushToken } from './fixture.ts'

let proxy: TcpProxy
let key: string
let publicId: string
let token: string
const slug = 'nightly-backup'

const folder = use(makeTempFolder)
const app = use(() =>
  startTestApp({
    environment: { SPOOL_DIR: join(folder.path, 'spool'), SPOOL_MAX_BYTES: '8388608' },
    reach: async (databaseUrl) => {
      const url = new URL(databaseUrl)
      proxy = await startTcpProxy(Number(url.port))
      url.host = `127.0.0.1:${proxy.port}`
      return url.href
    },
  }),
)
beforeAll(async () => {
  key = (await app.client.post(`/projects/${app.projectId}/ping-key`)).body.ping_key
  const check = await app.createCheck({ slug })
  publicId = check.publicId
  token = await addPushToken(app, check.id)
})
afterAll(async () => {
  await proxy?.close()
})

const ping = async (path: string, method = 'GET') => {
  const { status, headers, text } = await exchange(app.pingUrl, writeHead(method, path))
  return { status, text, stored: headers['ping-stored'], retry: headers['retry-after'] }
}
const cut = () => {
  proxy.refuse()
  proxy.reset()
}
const readiness = async () => {
  const { status, text } = await exchange(app.opsUrl, writeHead('GET', '/readyz'))
  return { status, text }
}

describe('while the database is unavailable', () => {
  it('a ping of a known check is on disk and gets its 200, by its id, its name or its token; others get 503', async () => {
    const known = [`/ping/${publicId}`, `/ping/${key}/${slug}/start`, `/api/push/${token}?status=up`]
    for (const path of known) expect(await ping(path)).toMatchObject({ status: 200, stored: undefined })
    cut()
    const texts = ['OK', 'OK', '{"ok":true}']
    for (const [place, path] of known.entries())
      expect(await ping(path)).toEqual({ status: 200, text: texts[place], stored: 'spool', retry: undefined })
    expect(await ping(`/ping/${key}/${slug}/7`, 'POST')).toMatchObject({ status: 200, stored: 'spool' })
    const unknown = [
      `/ping/${randomUUID()}`,
      `/ping/${key}/another`,
      `/ping/${key}/another?create=1`,
      `/ping/${'x'.repeat(22)}/${slug}`,
      `/api/push/${randomUUID().replaceAll('-', '')}`,
    ]
    for (const path of unknown)
      expect(await ping(path), path).toMatchObject({ status: 503, stored: undefined, retry: expect.any(String) })
    expect(
      await eventually('the service says that it spools', async () =>
        (await readiness()).text === 'ok\n' ? null : readiness(),
      ),
    ).toEqual({ status: 200, text: 'database unavailable; spooling\n' })

    await proxy.accept()
    const types = async () => (await app.storedPings(publicId)).map(({ type }) => type)
    await eventually('all seven pings are read back', async () => (await types()).length === 7)
    expect(await types()).toEqual(['success', 'start', 'success', 'success', 'start', 'success', 'fail'])
    await eventually('the service says ok', async () => (await readiness()).text === 'ok\n')
    expect(await ping(`/ping/${publicId}`)).toMatchObject({ status: 200, stored: undefined })
  })
})
