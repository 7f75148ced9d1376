/** A reflector on a fake API server and a manual clock, and what it said, in short. */

import { createClient, type KubernetesClient } from '../../../src/kubernetes/client.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'
import { createReflector, type ReflectorOptions } from '../../../src/kubernetes/reflector.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { CONFIG_MAPS, type FakeApiServer, startFakeApiServer } from '../../support/fake-api-server.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { throughPauses } from './until-done.ts'

export interface Note extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>
}

export interface Reflecting extends AsyncDisposable {
  readonly server: FakeApiServer
  readonly clock: ManualClock
  readonly client: KubernetesClient
  readonly reflector: ReturnType<typeof createReflector<Note>>
  /** `shop/a: - -> 1`: the key, and the text of before and after. */
  readonly changes: string[]
  /** `list: the message`. */
  readonly problems: string[]
  readonly restarts: string[]
  readonly counts: number[]
  /** Waits for it, through pauses of the back-off. */
  until(isSo: () => boolean): Promise<void>
  /** Starts it, and waits for its first list and its first watch. */
  follow(): Promise<void>
  write(name: string, text: string): void
  remove(name: string): void
  /** Lists, without those of one object that only look where the server is. */
  lists(): number
  checks(): number
  /** The number of watches so far. */
  watchesAsked(): number
}

/** Of the back-off without its chance. */
const LONGEST_PAUSE_MS = 15_000
/** The client's own pauses are shorter than this, and its time limits are not. */
const LIMIT_MS = 9_000

function noteLimits(clock: ManualClock, limits: Set<number>): Clock {
  return {
    now: clock.now,
    async sleep(ms, signal) {
      const at = clock.now() + ms
      if (ms >= LIMIT_MS) limits.add(at)
      await clock.sleep(ms, signal)
      limits.delete(at)
    },
  }
}

export async function startReflecting(options: Partial<ReflectorOptions<Note>> = {}): Promise<Reflecting> {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await startFakeApiServer())
  const clock = createManualClock()
  const limits = new Set<number>()
  const client = createClient({ connection: server.connection, clock: noteLimits(clock, limits), random: () => 0 })
  stack.defer(() => client.close())
  const changes: string[] = []
  const problems: string[] = []
  const restarts: string[] = []
  const counts: number[] = []
  const textOf = (note: Note | undefined) => (note === undefined ? '-' : (note.data?.text ?? '?'))
  const reflector = createReflector<Note>({
    client,
    type: CONFIG_MAPS,
    clock,
    random: () => 0,
    onChange: (key, { before, after }) => changes.push(`${key}: ${textOf(before)} -> ${textOf(after)}`),
    onProblem: (error, kind) => problems.push(`${kind}: ${(error as Error).message}`),
    metrics: {
      restarted: (reason) => restarts.push(reason),
      contact: () => {},
      objects: (count) => counts.push(count),
    },
    ...options,
  })
  stack.defer(() => reflector.stop())
  const notes = () => server.collection(CONFIG_MAPS)
  // While a watch is open only its stall timer sleeps, and that must not be woken by being waited for.
  const pauses = () => (server.watches.length > 0 ? [] : clock.wakeTimes().filter((at) => !limits.has(at)))
  const pausing = { ...clock, wakeTimes: pauses }
  const until = (isSo: () => boolean) => throughPauses(pausing, isSo, LONGEST_PAUSE_MS)
  const asked = (isIt: (request: FakeApiServer['requests'][number]) => boolean) => server.requests.filter(isIt).length
  const isCheck = ({ query }: FakeApiServer['requests'][number]) => query.get('limit') === '1'
  return {
    server,
    clock,
    client,
    reflector,
    changes,
    problems,
    restarts,
    counts,
    until,
    async follow() {
      reflector.start()
      await until(() => reflector.hasSynced() && server.watches.length === 1)
    },
    write(name, text) {
      const data = { text }
      const metadata = { namespace: 'shop', name }
      const key = `shop/${name}`
      try {
        notes().mergePatch(key, { data })
      } catch {
        notes().create({ metadata, data })
      }
    },
    remove: (name) => notes().delete(`shop/${name}`),
    lists: () => asked((request) => request.isList && !isCheck(request)),
    checks: () => asked((request) => request.isList && isCheck(request)),
    watchesAsked: () => asked((request) => request.isWatch),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
