/** The whole service and the real Alertmanager: a cluster of two peers that share no alerts, so that the service must notify each. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { declareCheck } from '../../src/checks/declare/declare-check.ts'
import { NO_SPEC } from '../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../src/domain/check.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { type Alertmanager, type ShownAlert, startAlertmanagers } from '../support/alertmanager.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { eventually } from '../support/until.ts'

type Cluster = Awaited<ReturnType<typeof startAlertmanagers>>

let pager: Receiver
let cluster: Cluster
let peers: readonly Alertmanager[]
let app: TestApp

beforeAll(async () => {
  pager = await startReceiver()
  cluster = await startAlertmanagers({ count: 2, webhookUrl: pager.url })
  peers = cluster.peers
}, 300_000)
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
  await pager.close()
})
afterEach(() => app.close())

const urls = () => peers.map(({ url }) => url)
let made = 0
/** Peers outlive a test, so each test has names of its own. */
const makeCheck = async () => {
  made += 1
  const name = `backup-${process.pid}-${made}`
  return { name, ...(await app.createCheck({ name })) }
}

const ping = async (publicId: string, path = '', body?: string) => {
  const response = await fetch(`${app.pingUrl}/ping/${publicId}${path}`, {
    method: 'POST',
    ...(body === undefined ? {} : { body }),
  })
  expect(response.status).toBe(200)
}

const alertOf = (alerts: readonly ShownAlert[], name: string) => alerts.find(({ labels }) => labels.check === name)
/** At each peer. */
const waitForAlert = (name: string) =>
  Promise.all(peers.map((peer) => peer.waitFor(`the alert of ${name}`, (alerts) => alertOf(alerts, name))))
const waitForNone = (name: string) =>
  Promise.all(peers.map((peer) => peer.waitFor(`no alert of ${name}`, (alerts) => alertOf(alerts, name) === undefined)))

/** Instead of the minute that it would take. */
const makeDue = () => app.database.query("update alerts set tell_at = 'epoch'")

/** What was notified of a check, repeats left out. */
const notified = (name: string) =>
  pager.requests
    .flatMap(({ body }) => (JSON.parse(body) as { alerts: (ShownAlert & { status: string })[] }).alerts)
    .filter(({ labels }) => labels.check === name)
    .map(({ status }) => status)
    .filter((status, index, all) => status !== all[index - 1])

describe('the Alertmanager of the installation', () => {
  beforeEach(async () => {
    app = await startTestApp({ environment: { ALERTMANAGER_URL: urls().join(',') } })
  })

  it('shows at each peer a check that fails, with what its job said, and its recovery', async () => {
    const { name, id, publicId } = await makeCheck()
    await ping(publicId, '/3', 'rsync: connection unexpectedly closed\nexit 3')
    for (const alert of await waitForAlert(name)) {
      expect(alert.labels).toEqual({
        alertname: 'HeartbeatCheckDown',
        check: name,
        project: 'default',
        reason: 'failed',
        severity: 'critical',
      })
      expect(alert.annotations).toEqual({
        summary: `${name} is down`,
        description: expect.stringMatching(/^The job reported a failure with exit code 3 at /),
        body: 'rsync: connection unexpectedly closed\nexit 3',
        acknowledge_url: expect.stringContaining(`${new URL(app.apiUrl).origin}/ack/`),
      })
      expect(alert.generatorURL).toBe(`${new URL(app.apiUrl).origin}/checks/${id}`)
      const lifeMs = Date.parse(alert.endsAt) - Date.now()
      expect(lifeMs).toBeGreaterThan(14 * 60_000)
      expect(lifeMs).toBeLessThanOrEqual(15 * 60_000)
    }
    await eventually('the page has come', () => notified(name).length >= 1)
    await ping(publicId)
    await waitForNone(name)
    await eventually('the page about the end has come', () => notified(name).length >= 2)
    // The second peer waits for the first one's page, and may then page about what was true before that.
    expect(notified(name).slice(0, 2)).toEqual(['firing', 'resolved'])
  })

  it('takes the labels of a check, whatever Kubernetes allows in their names', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'web', '2nd': 'x', severity: 'warning', namespace: 'own', empty: '' }
    const name = `labelled-${process.pid}`
    const { publicId } = await app.createCheck({ name, labels })
    await ping(publicId, '/fail')
    for (const alert of await waitForAlert(name))
      expect(alert.labels).toEqual({
        alertname: 'HeartbeatCheckDown',
        check: name,
        project: 'default',
        reason: 'failed',
        severity: 'warning',
        app_kubernetes_io_part_of: 'web',
        label_2nd: 'x',
        label_namespace: 'own',
      })
    await ping(publicId)
    await waitForNone(name)
  })

  it('goes on believing it while the check stays down', async () => {
    const { name, publicId } = await makeCheck()
    await ping(publicId, '/fail')
    const before = await waitForAlert(name)
    await makeDue()
    for (const [index, peer] of peers.entries()) {
      const later = await peer.waitFor('a later end', (alerts) => {
        const alert = alertOf(alerts, name)
        return alert !== undefined && alert.endsAt > before[index]!.endsAt && alert
      })
      expect({ ...later, endsAt: '', updatedAt: '' }).toEqual({ ...before[index], endsAt: '', updatedAt: '' })
    }
  })

  it('hears it again at a peer that was restarted and has forgotten everything', async () => {
    const { name, publicId } = await makeCheck()
    await ping(publicId, '/fail')
    await waitForAlert(name)
    const [, second] = peers
    await second!.kill()
    await makeDue()
    await eventually(
      'the alert ends in less than 15 s',
      async () => (await soonest()) < 15_000 && (await soonest()) > 0,
    )
    await second!.start()
    expect(await second!.alerts()).toEqual([])
    // Ten seconds, by itself.
    await waitForAlert(name)
    await ping(publicId)
    await waitForNone(name)
  })

  it('hears of what happened while one peer was away', async () => {
    const { name, publicId } = await makeCheck()
    const [first, second] = peers
    await second!.kill()
    await ping(publicId, '/fail')
    await first!.waitFor('the alert', (alerts) => alertOf(alerts, name))
    await eventually('there is one delivery', async () => (await deliveries(name)).length === 1)
    const [delivery] = await deliveries(name)
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 })
    // The log names the peer.
    expect(delivery!.last_error).toContain('the log of the service has a note')
    await second!.start()
    await waitForAlert(name)
  })

  async function deliveries(name: string) {
    const { body } = await app.client.get('/deliveries?status=delivered')
    const { body: list } = await app.client.get(`/checks?project_id=${app.projectId}&slug=${name}`)
    const { id } = list.checks[0]
    return (
      body.deliveries as { check_id: string; status: string; attempts: number; last_error: string | null }[]
    ).filter(({ check_id }) => check_id === id)
  }

  /** In how many milliseconds an alert is sent next. */
  async function soonest(): Promise<number> {
    const { rows } = await app.database.query<{ ms: number }>(
      'select (extract(epoch from min(tell_at) - now()) * 1000)::float8 as ms from alerts',
    )
    return rows[0]!.ms
  }

  it.each([
    ['deleted', (id: string) => app.client.delete(`/checks/${id}`)],
    ['paused', (id: string) => app.client.patch(`/checks/${id}/pause`)],
  ])('has nothing left of a check that is %s', async (_, change) => {
    const { name, id, publicId } = await makeCheck()
    await ping(publicId, '/fail')
    await waitForAlert(name)
    expect((await change(id)).status).toBeLessThan(300)
    await waitForNone(name)
  })

  it('has nothing left of the old slug of a check', async () => {
    const { name, id, publicId } = await makeCheck()
    await ping(publicId, '/fail')
    await waitForAlert(name)
    expect((await app.client.put(`/checks/${id}`, { slug: `${name}-new` })).status).toBe(200)
    await waitForAlert(`${name}-new`)
    await waitForNone(name)
    await ping(publicId)
    await waitForNone(`${name}-new`)
  })

  it('has nothing left of the old project of a declared check', async () => {
    const { body: payments } = await app.client.post('/projects', { name: 'Payments' })
    const name = `declared-${process.pid}`
    const declare = (projectId: string) =>
      declareCheck(
        { database: app.database, clock: systemClock },
        {
          resource: { cluster: 'default', namespace: 'shop', name },
          projectId,
          name,
          ...NO_TEXTS,
          spec: {
            ...NO_SPEC,
            periodSeconds: 3_600,
            graceSeconds: 300,
          },
          suspend: null,
          adoptId: null,
        },
      )
    const { check } = await declare(app.projectId)
    await ping(check.publicId, '/fail')
    for (const { labels } of await waitForAlert(name))
      expect(labels).toMatchObject({ namespace: 'shop', project: 'default' })
    await declare(payments.id)
    for (const peer of peers) {
      const found = await peer.waitFor('the alert of the other project alone', (alerts) => {
        const all = alerts.filter(({ labels }) => labels.check === name)
        return all.length === 1 && all[0]!.labels.project === 'payments' && all[0]!
      })
      expect(found.labels.namespace).toBe('shop')
    }
    await ping(check.publicId)
    await waitForNone(name)
  })
})

describe('a channel of the API', () => {
  const createChannel = async (peers = urls()) => {
    const config = { urls: peers, labels: { severity: 'warning', team: 'storage' } }
    const { status, body } = await app.client.post('/channels', { kind: 'alertmanager', name: 'Storage', config })
    expect(status).toBe(201)
    return body.id as string
  }

  it('gets the alerts of checks with labels of its own, and can be tested', async () => {
    app = await startTestApp({ environment: { ALLOWED_TARGETS: '127.0.0.0/8' } })
    const channel = await createChannel()
    expect((await app.client.post(`/channels/${channel}/test`)).status).toBe(202)
    for (const peer of peers)
      await peer.waitFor('the test', (alerts) => alerts.find(({ labels }) => labels.alertname === 'HeartbeatTest'))

    const { name, publicId } = await makeCheck()
    await ping(publicId, '/fail')
    for (const { labels } of await waitForAlert(name))
      expect(labels).toMatchObject({ check: name, severity: 'warning', team: 'storage' })
    await ping(publicId)
    await waitForNone(name)
  })

  it('reaches no private address that the operator has not allowed', async () => {
    app = await startTestApp()
    // A name: a URL with an address that is not allowed cannot be stored.
    await createChannel(urls().map((url) => url.replace('127.0.0.1', 'localhost')))
    const { publicId } = await makeCheck()
    await ping(publicId, '/fail')
    await eventually('the delivery has failed for ALLOWED_TARGETS', async () => {
      const { body } = await app.client.get('/deliveries?status=failed')
      return body.deliveries.length === 1 && body.deliveries[0]!.last_error.includes('ALLOWED_TARGETS')
    })
    expect(pager.requests.some(({ body }) => body.includes(publicId))).toBe(false)
  })
})
