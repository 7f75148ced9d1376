import { expect, it } from 'vitest'
import { type NamespaceWatch, startNamespaceReads } from '../../../../src/operator/namespaces/watch-namespaces.ts'
import type { Log } from '../../../../src/runtime/log.ts'
import { createLoop } from '../../../../src/runtime/loop.ts'
import { anApiError } from '../../../support/builders.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { useEach } from '../../../support/use.ts'

const LABEL = 'heartbeat-operator.io/watch'

const clock = useEach(createManualClock)
const t = useEach(() => ({
  asked: [] as string[],
  labels: { shop: { [LABEL]: 'true', team: 'a' }, stock: {} } as Record<string, Record<string, string>>,
  fault: null as number | null,
  changed: [] as string[],
  informed: [] as string[],
  warned: [] as string[],
}))

function start(): NamespaceWatch {
  const get = async (_: object, { name }: { name: string }) => {
    t.asked.push(name)
    const status = name === 'shop' && t.fault !== null ? t.fault : t.labels[name] === undefined ? 404 : null
    if (status !== null) throw anApiError(status)
    return { metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels: t.labels[name] } }
  }
  const log = {
    info: (_: object, text: string) => void t.informed.push(text),
    warn: (_: object, text: string) => void t.warned.push(text),
  } as unknown as Log
  const onChange = (name: string) => void t.changed.push(name)
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
  expect(t.asked.splice(0)).toEqual(['shop', 'stock'])
  expect(watch.get('shop')?.metadata.labels).toEqual({ [LABEL]: 'true' })
  expect(watch.get('stock')?.metadata.labels).toBeUndefined()
  expect(t.changed.splice(0)).toEqual(['shop', 'stock'])
  await clock.advance(59_999)
  expect(t.asked).toEqual([])
  t.labels.stock = { [LABEL]: 'true' }
  await clock.advance(1)
  expect(t.asked).toEqual(['shop', 'stock'])
  expect(t.changed).toEqual(['stock'])
  await watch.stop()
})

it('a right that is missing is reported once; the other Namespaces are read, and what was known stays', async () => {
  t.fault = 403
  const watch = start()
  await clock.advance(120_000)
  expect(watch.get('shop')).toBeUndefined()
  expect(watch.get('stock')).toBeDefined()
  expect([t.informed.length, t.warned.length]).toEqual([1, 0])
  t.fault = null
  await clock.advance(60_000)
  expect(watch.get('shop')).toBeDefined()
  t.fault = 403
  await clock.advance(60_000)
  expect(watch.get('shop')).toBeDefined()
  expect(t.informed).toHaveLength(2)
  await watch.stop()
})

it('an API server that fails is tried again a minute later; a Namespace that is gone is not known any more', async () => {
  t.fault = 500
  const watch = start()
  await clock.advance(0)
  expect([t.warned.length, t.changed]).toEqual([1, ['stock']])
  t.fault = null
  delete t.labels.stock
  await clock.advance(60_000)
  expect(t.changed).toEqual(['stock', 'shop'])
  expect(watch.get('stock')).toBeUndefined()
  await watch.stop()
})
