/**
 * `/live`: a stream of Server-Sent Events for each open page says which checks changed; the script then reads its page
 * again. A stream ends with its session, and when this process begins to stop.
 */

import type { ServerResponse } from 'node:http'
import type { Context as KoaContext } from 'koa'
import { type DashboardCaller, findEndedSessions } from '../../auth/sessions.ts'
import type { ChannelContext } from '../../channels/context.ts'
import type { Changed, ChangeHub } from '../../checks/watch-changes.ts'
import { AppError } from '../../domain/errors.ts'
import { isUuid } from '../../domain/ids.ts'
import { toIso } from '../../domain/instant.ts'
import type { Clock } from '../../runtime/clock.ts'
import { createLoop } from '../../runtime/loop.ts'
import { STREAM_BYTES, STREAMS, STREAMS_PER_SESSION, STREAMS_PER_USER } from '../limits.ts'

export interface Live {
  /** `?since=`: the server's time in the page, in ISO 8601. `?check=`: the only check that the page shows. */
  open(ctx: KoaContext, caller: DashboardCaller): void
  /** Ends all streams at once; there are no new ones. */
  stop(): Promise<void>
  /** How many are open. */
  count(): number
}

export interface LiveOptions {
  readonly context: Pick<ChannelContext, 'database' | 'clock'>
  readonly changes: ChangeHub
  /** This process's clock. */
  readonly clock: Clock
  /** For the log; streams stay open. */
  readonly onProblem: (error: unknown) => void
  /** For tests. */
  readonly mostStreams?: number
}

export const LIVE_PATH = '/live'
/** One statement for all. Well below the five seconds after which a stream must have ended. */
const SESSIONS_MS = 2_000
/** Proxies close a connection on which nothing was sent for a while, often a minute. */
const BEAT_MS = 20_000
/** After which a client other than our script connects again. */
const RETRY_MS = 3_000

const EVENT_STREAM = 'text/event-stream; charset=utf-8'
const BEAT = Buffer.from(':\n\n')
const message = (event: string, data: object) => Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
/** Why the script must not connect again at once. */
const ENDS = { session: message('end', { reason: 'session' }), many: message('end', { reason: 'many' }) } as const

interface Stream {
  readonly response: ServerResponse
  readonly sessionId: string
  readonly userId: string
  leave(): void
}

export function createLive(options: LiveOptions): Live {
  const { context, changes, clock, onProblem, mostStreams = STREAMS } = options
  /** In the order of their beginning. */
  const streams = new Set<Stream>()
  const messages = new WeakMap<NonNullable<Changed>, Buffer>()
  let isStarted = false
  let isStopped = false

  const loops = [
    createLoop({ everyMs: SESSIONS_MS, clock, run: endSessions, onError: onProblem }),
    createLoop({ everyMs: BEAT_MS, clock, run: beat, onError: onProblem }),
  ]

  async function endSessions(): Promise<'done'> {
    if (streams.size === 0) return 'done'
    const ids = new Set(Array.from(streams, ({ sessionId }) => sessionId))
    const ended = new Set(await findEndedSessions(context, [...ids]))
    for (const stream of streams) if (ended.has(stream.sessionId)) end(stream, ENDS.session)
    return 'done'
  }

  async function beat(): Promise<'done'> {
    for (const stream of [...streams]) write(stream, BEAT)
    return 'done'
  }

  function write(stream: Stream, bytes: Buffer): void {
    const { response } = stream
    // A response that was destroyed before it had begun does not close again.
    if (response.destroyed) {
      stream.leave()
      return
    }
    if (response.writableEnded) return
    response.write(bytes)
    if (response.writableLength > STREAM_BYTES) response.destroy()
  }

  function end(stream: Stream, last?: Buffer): void {
    if (last !== undefined) write(stream, last)
    stream.response.end()
    stream.leave()
  }

  /** The oldest stream of the group ends, if the group has no room for one more. */
  function makeRoom(group: readonly Stream[], most: number): void {
    if (group.length >= most) end(group[0]!, ENDS.many)
  }

  function mostOfOneUser(): readonly Stream[] {
    const groups = Map.groupBy(streams, ({ userId }) => userId).values()
    return groups.reduce((most: readonly Stream[], group) => (group.length > most.length ? group : most), [])
  }

  /** All watchers of an organization get the same array, whose message is made once. */
  function messageOf(changed: Changed): Buffer {
    // The page must be read at this time or later to show the change, by the clock that all replicas share.
    const at = toIso(context.clock.now())
    if (changed === null) return message('reload', { at })
    const known = messages.get(changed)
    if (known !== undefined) return known
    const made = message('change', { at, checks: changed })
    messages.set(changed, made)
    return made
  }

  return {
    open(ctx, { id: userId, sessionId, organizationId }) {
      if (isStopped)
        throw new AppError('unavailable', 'this server is stopping; connect again', { retryAfterSeconds: 1 })
      if (ctx.method === 'HEAD') {
        ctx.body = ''
        ctx.type = EVENT_STREAM
        return
      }
      const now = context.clock.now()
      const query = new URLSearchParams(ctx.querystring)
      const since = Date.parse(query.get('since') ?? '')
      const check = query.get('check') ?? ''
      const isOfSession = (stream: Stream) => stream.sessionId === sessionId
      const isOfUser = (stream: Stream) => stream.userId === userId
      makeRoom([...streams].filter(isOfSession), STREAMS_PER_SESSION)
      makeRoom([...streams].filter(isOfUser), STREAMS_PER_USER)
      if (streams.size >= mostStreams) makeRoom(mostOfOneUser(), 1)

      const {
        req: { socket },
        res: response,
      } = ctx
      ctx.respond = false
      // The client has left while its session was looked up: `close` was emitted before.
      if (response.destroyed || socket.destroyed) return
      // The client may close the connection at any time; without a listener that error would end the process.
      response.on('error', () => {})
      response.writeHead(200, {
        'Content-Type': EVENT_STREAM,
        // nginx would else gather the events.
        'X-Accel-Buffering': 'no',
        Connection: 'close',
      })
      let unwatch = () => {}
      const stream: Stream = {
        response,
        sessionId,
        userId,
        leave() {
          unwatch()
          socket.off('end', onEnd)
          streams.delete(stream)
        },
      }
      // Our side of the connection stays open until then (http/server.ts).
      const onEnd = () => end(stream)
      socket.once('end', onEnd)
      response.once('close', stream.leave)
      streams.add(stream)
      write(stream, Buffer.concat([Buffer.from(`retry: ${RETRY_MS}\n`), message('hello', { now: toIso(now) })]))
      if (!streams.has(stream)) return
      unwatch = changes.watch({
        organizationId,
        checkId: isUuid(check) ? check.toLowerCase() : null,
        since: Number.isNaN(since) ? now : Math.min(since, now),
        onChange: (changed) => write(stream, messageOf(changed)),
      })
      if (isStarted) return
      isStarted = true
      for (const loop of loops) loop.start()
    },
    async stop() {
      isStopped = true
      for (const stream of [...streams]) end(stream)
      await Promise.all(loops.map((loop) => loop.stop()))
    },
    count: () => streams.size,
  }
}
