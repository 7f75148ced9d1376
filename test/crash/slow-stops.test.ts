import { expect, it } from 'vitest'
import { startPostgresServer } from '../support/postgres-server.ts'
import { aPing, beginPing, sendPing } from '../support/sent-pings.ts'
import { isReady, openStage } from '../support/stage.ts'
import { eventually } from '../support/until.ts'

/** Stops that have to wait for a limit of time. */

const ENDED_WELL = { status: 0, signal: null }

it.concurrent('a stop does not wait for ever for a request that never ends', async () => {
  await using stage = await openStage()
  const service = await stage.startReplica()
  const { publicId } = await stage.makeCheck(service)
  const { socket, answer } = await beginPing(service, publicId)
  // The end of a connection that is cut can reach the client as a reset.
  const cut = answer.catch(({ code }) => code)
  expect(await service.stop('SIGTERM', 28_000)).toEqual(ENDED_WELL)
  expect(await cut).toBeOneOf(['', 'ECONNRESET'])
  socket.destroy()
  // No gap and no deadline of other replicas waits for the process, although its last beat is old.
  expect(await stage.query('select has_stopped from ping_beats')).toEqual([{ has_stopped: true }])
})

it.concurrent('a stop while the database is gone ends all the same', async () => {
  await using server = await startPostgresServer({ settings: { fsync: 'off' } })
  await using stage = await openStage(server.url)
  const service = await stage.startReplica()
  await server.pause()
  const pings = Array.from({ length: 5 }, () => sendPing(service.ping, aPing('00000000-0000-4000-8000-000000000000')))
  // By then they have long been read.
  await eventually('the service is not ready', async () => !(await isReady(service)))
  expect(await service.stop('SIGTERM', 15_000)).toEqual(ENDED_WELL)
  for (const { status, error } of await Promise.all(pings))
    expect({ status, error }).toEqual({ status: 503, error: null })
  await server.resume()
})
