import { expect, it } from 'vitest'
import type { KubernetesObject } from '../../../../src/kubernetes/objects.ts'
import { startNamespaceWatch } from '../../../../src/operator/namespaces/watch-namespaces.ts'
import { anApiError } from '../../../support/builders.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { listen } from '../../../support/operator.ts'

const denied = anApiError(403)

const aNamespace = (name: string, resourceVersion: string, projects?: string, watch?: string): KubernetesObject => ({
  metadata: {
    name,
    uid: `${name}-uid`,
    resourceVersion,
    labels: { team: 'a', ...(watch === undefined ? {} : { 'heartbeat-operator.io/watch': watch }) },
    ...(projects === undefined ? {} : { annotations: { 'heartbeat-operator.io/projects': projects, other: 'x' } }),
  },
})

type Options = Parameters<typeof startNamespaceWatch>[0]

function start(client: object, changes: Partial<Options> = {}) {
  const clock = createManualClock()
  const options = { client: client as Options['client'], clock, random: () => 0, log: listen().log, onChange() {} }
  return { clock, watch: startNamespaceWatch({ ...options, ...changes }) }
}

it('without the right to list it knows nothing, says so once, and tries again with a back-off of at most half a minute', async () => {
  const { said, log } = listen()
  const infos: string[] = []
  let lists = 0
  const list = async () => {
    lists += 1
    throw denied
  }
  const info = (_: object, text: string) => infos.push(text)
  const { clock, watch } = start({ list }, { log: { ...log, info } as unknown as typeof log })
  await clock.advance(600_000)
  expect(lists).toBeLessThan(50)
  expect(watch.get('shop')).toBeUndefined()
  const before = lists
  await clock.advance(30_000)
  expect(lists).toBeGreaterThan(before)
  expect([said, infos.length]).toEqual([[], 1])
  await watch.stop()
})

it('knows nothing more once the right was taken away, and all when it is granted again, which it reports', async () => {
  let isDenied = false
  let end = () => {}
  const check = <T>(value: T): T => {
    if (isDenied) throw denied
    return value
  }
  const client = {
    list: async () => check({ items: [aNamespace('shop', '1')], resourceVersion: '1', continueToken: null }),
    async *watch(_: object, { onContact }: { onContact: () => void }) {
      check(null)
      onContact()
      await new Promise<void>((resolve) => {
        end = resolve
      })
    },
  }
  const reported: unknown[] = []
  const { clock, watch } = start(client, {
    onChange: (name, { isOfProjects, isOfLabel }) => reported.push([name, isOfProjects, isOfLabel]),
  })
  await clock.advance(60_000)
  expect(watch.get('shop')).toBeDefined()
  isDenied = true
  end()
  await clock.advance(30_000)
  expect(watch.get('shop')).toBeUndefined()
  expect(reported.splice(0)).toEqual([['shop', false, true]])
  isDenied = false
  await clock.advance(30_000)
  expect(watch.get('shop')).toBeDefined()
  expect(reported).toEqual([['shop', false, true]])
  const stopped = watch.stop()
  end()
  await stopped
})

it('holds what the operator reads of each, and reports what is new about it', async () => {
  const changed: string[] = []
  let onEvent: ((event: object) => void) | undefined
  const client = {
    list: async () => ({
      items: [aNamespace('shop', '1', 'payments', 'true'), aNamespace('plain', '2')],
      resourceVersion: '2',
      continueToken: null,
    }),
    async *watch(_: object, { signal }: { signal: AbortSignal }) {
      while (!signal.aborted) {
        const next = Promise.withResolvers<object>()
        onEvent = next.resolve
        signal.addEventListener('abort', () => next.reject(signal.reason), { once: true })
        yield await next.promise
      }
    },
  }
  const { clock, watch } = start(client, {
    onChange: (name, { isOfProjects, isOfLabel }) =>
      changed.push(`${name}${isOfProjects ? ' projects' : ''}${isOfLabel ? ' label' : ''}`),
  })
  await clock.advance(0)
  expect(watch.get('shop')?.metadata).toEqual({
    name: 'shop',
    uid: 'shop-uid',
    resourceVersion: '1',
    annotations: { 'heartbeat-operator.io/projects': 'payments' },
    labels: { 'heartbeat-operator.io/watch': 'true' },
  })
  expect(watch.get('plain')?.metadata).toEqual({ name: 'plain', uid: 'plain-uid', resourceVersion: '2' })
  expect(watch.get('unknown')).toBeUndefined()
  // Their labels are known now.
  expect(changed.splice(0)).toEqual(['shop label', 'plain label'])
  const send = async (type: string, object: KubernetesObject) => {
    onEvent?.({ type, object })
    await clock.advance(0)
  }
  await send('MODIFIED', { ...aNamespace('shop', '3', 'payments', 'true') })
  expect(changed).toEqual([])
  await send('ADDED', aNamespace('new', '4', 'payments'))
  expect(changed.splice(0)).toEqual(['new label'])
  await send('MODIFIED', aNamespace('shop', '5', 'payments,shared', 'true'))
  await send('MODIFIED', aNamespace('plain', '6', 'shared'))
  expect(changed.splice(0)).toEqual(['shop projects', 'plain projects'])
  await send('MODIFIED', aNamespace('shop', '7', 'payments,shared', 'false'))
  await send('MODIFIED', aNamespace('plain', '8', undefined, 'true'))
  expect(changed).toEqual(['shop label', 'plain projects label'])
  await watch.stop()
})
