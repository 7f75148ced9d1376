import { beforeEach, expect, it } from 'vitest'
import { type NamespaceWatch, startNamespaceReads } from '../../../../src/operator/namespaces/watch-namespaces.ts'
import type { Log } from '../../../../src/runtime/log.ts'
import { createLoop } from '../../../../src/runtime/loop.ts'
import { anApiError } from '../../../support/builders.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { useEach } from '../../../support/use.ts'

const LABEL = 'heartbeat-operator.io/watch'

let asked: string[]
let labels: Record<string, Record<string, string>>
let fault: number | null
let changed: string[]
let informed: string[]
let warned: string[]

const clock = useEach(createManualClock)
beforeEach(() => {
  asked = []
  labels = { shop: { [LABEL]: 'true', team: 'a' }, stock: {} }
  fault = null
  changed = []
  informed = []
  warned = []
})

function start(): NamespaceWatch {
  const get = async (_: object, { name }: { name: string }) => {
    asked.push(name)
    const status = name === 'shop' && fault !== null ? fault : labels[name] === undefined ? 404 : null
    if (status !== null) throw anApiError(status)
    return { metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels: labels[name] } }
  }
  const log = {
    info: (_: object, text: string) => void informed.push(text),
    warn: (_: object, text: string) => void warned.push(text),
  } as unknown as Log
  const onChange = (name: string) => void changed.push(name)
  const startLoop = (_: string, everyMs: number, read: (stopping: AbortSignal) => Promise<void>) => {
    const run = async (stopping: AbortSignal) => read(stopping).then(() => 'done' as const)
    const loop = createLoop({ everyMs, clock, run, onError: (error) => expect.unreachable(String(error)) })
    loop.start()
    return loop
  }
  return startNamespaceReads({ client: { get } as never, namespaces: ['shop', 'stock'], startLoop, log, onChange })
}

it('reads each by its name at the start and once a minute, and reports what is new', async () => {
  const watch = start()
  expect(watch.get('shop')).toBeUndefined()
  await clock.advance(0)
  expect(asked.splice(0)).toEqual(['shop', 'stock'])
  expect(watch.get('shop')?.metadata.labels).toEqual({ [LABEL]: 'true' })
  expect(watch.get('stock')?.metadata.labels).toBeUndefined()
  expect(changed.splice(0)).toEqual(['shop', 'stock'])
  await clock.advance(59_999)
  expect(asked).toEqual([])
  labels.stock = { [LABEL]: 'true' }
  await clock.advance(1)
  expect(asked).toEqual(['shop', 'stock'])
  expect(changed).toEqual(['stock'])
  await watch.stop()
})

it('a right that is missing is reported once; the other Namespaces are read, and what was known stays', async () => {
  fault = 403
  const watch = start()
  await clock.advance(120_000)
  expect(watch.get('shop')).toBeUndefined()
  expect(watch.get('stock')).toBeDefined()
  expect([informed.length, warned.length]).toEqual([1, 0])
  fault = null
  await clock.advance(60_000)
  expect(watch.get('shop')).toBeDefined()
  fault = 403
  await clock.advance(60_000)
  expect(watch.get('shop')).toBeDefined()
  expect(informed).toHaveLength(2)
  await watch.stop()
})

it('an API server that fails is tried again a minute later; a Namespace that is gone is not known any more', async () => {
  fault = 500
  const watch = start()
  await clock.advance(0)
  expect([warned.length, changed]).toEqual([1, ['stock']])
  fault = null
  delete labels.stock
  await clock.advance(60_000)
  expect(changed).toEqual(['stock', 'shop'])
  expect(watch.get('stock')).toBeUndefined()
  await watch.stop()
})
