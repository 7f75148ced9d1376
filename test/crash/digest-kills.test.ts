/**
 * A replica is killed the moment a receiver has accepted a digest, before the outbox can write that down: the same
 * deliveries are sent again, none is lost, and what the receiver saw last of each check is true.
 */

import { expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { createTestDatabase } from '../support/database.ts'
import { startReceiver } from '../support/receiver.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'
import { KILLS } from './kills.ts'
import { createReplica } from './replica.ts'

/** Each takes as long as five of other files. */
const DIGESTS = Math.ceil(KILLS / 5)
const CHECKS = 40

const server = use(createTestDatabase)

it(`${DIGESTS} kills lose no delivery of a digest`, async () => {
  const { database } = server
  await using receiver = await startReceiver()
  await using replica = createReplica(() => ({
    ...databaseEnvironment(server.url),
    RATE_LIMIT_PER_MINUTE: '1000000',
    ALLOWED_TARGETS: '127.0.0.0/8',
    BASE_URL: 'http://heartbeat.test/api/v1',
    LOG_LEVEL: 'warn',
  }))
  await replica.started()
  const client = await createApiClient(replica.api()!, API_KEY)
  const channel = { kind: 'slack', name: 'Team', config: { url: `${receiver.url}/slack` } }
  expect(await client.post('/channels', channel)).toMatchObject({ status: 201 })
  const names = Array.from({ length: CHECKS }, (_, index) => `Job ${index + 1}.`)
  const publicIds = await Promise.all(
    names.map(async (name) => (await client.post('/checks', { project_id: PROJECT_ID, name })).body.public_id),
  )
  const digests = () =>
    receiver.requests
      .map(({ body }) => JSON.parse(body).blocks[0].text.text as string)
      .filter((text) => /^\S+ \d+ checks:/.test(text))
  const pending = async () => (await database.query('select from deliveries where status = 0')).rowCount

  let expired = 0
  for (let kill = 1; kill <= DIGESTS; kill += 1) {
    const before = digests().length
    const overrides = kill % 2 === 1 ? ({ type: 'fail', exitCode: 1 } as const) : {}
    const pings = publicIds.map((publicId) => sendPing(replica.ping()!, aPing(publicId, overrides)))
    for (const { status } of await Promise.all(pings)) expect(status).toBe(200)
    await eventually('another digest has come', () => digests().length > before)
    await replica.kill()
    const text = 'update deliveries set claimed_until = null where claimed_until is not null and status = 0'
    expired += (await database.query(text)).rowCount
    const left = await pending()
    await replica.started()
    await eventually('no delivery waits for a digest', async () => (await pending()) === 0)
    // Each delivery of a digest counts, in whatever number of messages they came.
    const metrics = await (await fetch(`${replica.ops()}/metrics`)).text()
    const counted = /^heartbeat_deliveries_total\{channel="slack",result="delivered"\} (\d+)$/m.exec(metrics)?.[1]
    expect(Number(counted)).toBe(left)
  }
  expect(await replica.stop()).toEqual({ status: 0, signal: null })

  const { rows } = await database.query<{ status: number; digest_id: string | null; attempts: number }>(
    'select status, digest_id, attempts from deliveries',
  )
  expect(rows).toHaveLength(DIGESTS * CHECKS)
  expect(new Set(rows.map(({ status }) => status))).toEqual(new Set([1]))
  expect(rows.filter((row) => row.digest_id !== null).length).toBeGreaterThan(rows.length / 2)
  // It is worth something only if a digest was on its way when the replica was killed.
  expect(expired).toBeGreaterThan(DIGEST_CROWD)
  expect(Math.max(...rows.map(({ attempts }) => attempts))).toBeGreaterThan(1)

  const sent = receiver.requests.map(
    ({ body }) => (JSON.parse(body) as { blocks: { text?: { text: string } }[] }).blocks,
  )
  const lines = sent.flatMap((blocks) =>
    blocks.flatMap(({ text }) => text?.text.replace(/^(?:🔴|🟢) /, '').split('\n') ?? []),
  )
  for (const name of names) expect(lines.findLast((line) => line.startsWith(`${name} is`))).toMatch(/ is down/)
})

const DIGEST_CROWD = 20
