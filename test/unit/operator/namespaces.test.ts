import { beforeEach, describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/kubernetes/errors.ts'
import { createNamespaces, type Namespaces } from '../../../src/operator/namespaces.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'

let clock: ManualClock
let answer: () => Record<string, string>
let asked: string[]
let namespaces: Namespaces

beforeEach(() => {
  clock = createManualClock()
  asked = []
  answer = () => ({ 'heartbeat-operator.io/projects': ' payments, shared,' })
  const get = async (_type: object, { name }: { name: string }) => {
    asked.push(name)
    return { metadata: { name, uid: 'u', resourceVersion: '1', annotations: answer() } }
  }
  namespaces = createNamespaces({ get } as unknown as Parameters<typeof createNamespaces>[0], clock)
})

const refuse = (status: number) => () => {
  throw new ApiError({
    status,
    reason: 'Refused',
    message: 'no',
    details: null,
    retryAfterSeconds: null,
    request: 'get',
  })
}
const look = (age: 'cached' | 'fresh' = 'cached') => namespaces.allowedProjects('shop', age)

describe('the projects that a namespace may use', () => {
  it('are listed in its annotation, or not restricted to any', async () => {
    expect(await look()).toEqual(['payments', 'shared'])
    answer = () => ({})
    await clock.advance(30_000)
    expect(await look()).toBeNull()
  })

  it('are remembered for half a minute, and for a second by those who wait for a change', async () => {
    await look()
    await clock.advance(999)
    await look('fresh')
    expect(asked).toHaveLength(1)
    await clock.advance(1)
    await look('fresh')
    expect(asked).toHaveLength(2)
    await clock.advance(29_999)
    await look()
    expect(asked).toHaveLength(2)
    await clock.advance(1)
    await look()
    expect(asked).toHaveLength(3)
  })

  it('are unknown to one who never had the right to read them', async () => {
    answer = refuse(403)
    expect(await look()).toBeNull()
  })

  it('stay what they are while a right that was there is away: it is tried again', async () => {
    await look()
    answer = refuse(403)
    await clock.advance(30_000)
    await expect(look()).rejects.toThrow('no')
    answer = () => ({ 'heartbeat-operator.io/projects': 'payments' })
    expect(await look()).toEqual(['payments'])
  })

  it('a failed read of a Namespace is not cached', async () => {
    answer = refuse(500)
    await expect(look()).rejects.toThrow('no')
  })
})
