/**
 * kill -9 between any two statements of the removal of a silence: it is removed with what it wakes, or it is there. In
 * the end the check that it kept quiet is notified, once.
 */

import { expect, it } from 'vitest'
import { API_KEY, PROJECT_ID } from '../support/service-process.ts'
import { openStage } from '../support/stage.ts'
import { eventually } from '../support/until.ts'
import { type HoldPoint, startStatementProxy } from './statement-proxy.ts'

const POOL = 'management'

it('kill -9 while a silence is removed: its check is notified once', async () => {
  await using stage = await openStage()
  await using proxy = await startStatementProxy(stage.url)
  const start = () => stage.startReplica({ DATABASE_URL: proxy.url, RATE_LIMIT_PER_MINUTE: '1000000' })
  let service = await start()
  const call = (method: string, path: string, body?: object) =>
    fetch(`${service.api}${path}`, {
      method,
      headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const config = { url: 'https://localhost:1/unreachable' }
  expect((await call('POST', '/channels', { kind: 'webhook', name: 'Any', config })).status).toBe(201)

  /** Those of the check, in their order: the reason of what is not sent. */
  async function messagesOf(id: string): Promise<unknown[]> {
    const text = `select d.type, d.reason from deliveries d join checks c on c.key = d.check_key where c.id = '${id}' order by d.id`
    return (await stage.query(text)).map(({ type, reason }) => reason ?? type)
  }

  /** A check that went down in a silence. */
  async function prepare() {
    const { id, ping } = await stage.makeCheck(service)
    const fields = { project_id: PROJECT_ID, check_id: id, ends_at: '2999-01-01T00:00:00Z', comment: 'test' }
    const silence = (await (await call('POST', '/silences', fields)).json()) as { id: string }
    expect(await ping(service, { type: 'fail', exitCode: 1 })).toBe(200)
    expect(await messagesOf(id)).toEqual(['silenced'])
    return { id, path: `/silences/${silence.id}` }
  }
  const isNotified = async (id: string) => (await messagesOf(id)).length === 2

  // The first call sends statements that later ones do not.
  await call('DELETE', (await prepare()).path)
  const recorded = await prepare()
  proxy.takeStatements(POOL)
  await call('DELETE', recorded.path)
  const statements = [...new Set(proxy.takeStatements(POOL))]
  expect(statements.join()).toContain('wake_silenced')
  const points: HoldPoint[] = statements.map((statement) => ({ statement, side: 'before' }))
  points.push({ statement: 'commit', side: 'after' })

  const ids = [recorded.id]
  let kills = 0
  for (const point of points) {
    const { id, path } = await prepare()
    ids.push(id)
    const held = proxy.holdAt(POOL, point)
    const removing = call('DELETE', path).catch(() => null)
    const isHeld = await Promise.race([held.then(() => true), removing.then(() => false)])
    proxy.cancel()
    if (isHeld) {
      kills += 1
      await service.kill()
      await removing
      service = await start()
      const { status } = await call('GET', path)
      expect(status, `${point.side} ${point.statement}`).toBe(point.side === 'after' ? 404 : 200)
      if (status === 200) expect((await call('DELETE', path)).status).toBe(204)
    }
    await eventually('the check is notified', () => isNotified(id))
  }
  expect(kills).toBeGreaterThan(3)
  for (const id of ids) expect(await messagesOf(id)).toEqual(['silenced', 'check.down'])
})
