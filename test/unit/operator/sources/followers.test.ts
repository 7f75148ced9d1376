import { expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { createFollowers } from '../../../../src/operator/sources/followers.ts'

function follows(name: string, cronJob?: string, namespace = 'shop'): HeartbeatCheck {
  const spec =
    cronJob === undefined ? { periodSeconds: 60 } : { sourceRef: { kind: 'CronJob' as const, name: cronJob } }
  return { metadata: { name, namespace, uid: name, resourceVersion: '1' }, spec }
}

it('knows all that follow a source, in its own namespace, until they are gone', () => {
  const followers = createFollowers()
  followers.note('shop/a', follows('a', 'backup'))
  followers.note('shop/b', follows('b', 'backup'))
  followers.note('shop/c', follows('c'))
  followers.note('other/a', follows('a', 'backup', 'other'))
  expect([...followers.of('shop/backup')]).toEqual(['shop/a', 'shop/b'])
  expect([...followers.of('other/backup')]).toEqual(['other/a'])
  expect([...followers.all()]).toHaveLength(3)
  followers.note('shop/a', undefined)
  followers.note('shop/c', undefined)
  expect([...followers.of('shop/backup')]).toEqual(['shop/b'])
  followers.note('shop/b', undefined)
  expect([...followers.of('shop/backup')]).toEqual([])
  expect([...followers.all()]).toEqual(['other/a'])
})

it('forgets the source of an earlier resource of the same name', () => {
  const followers = createFollowers()
  followers.note('shop/a', follows('a', 'backup'))
  followers.note('shop/a', follows('a', 'report'))
  expect([...followers.of('shop/backup')]).toEqual([])
  expect([...followers.of('shop/report')]).toEqual(['shop/a'])
  followers.note('shop/a', follows('a'))
  expect([...followers.all()]).toEqual([])
})
