import { expect, it } from 'vitest'
import { createFollowers } from '../../../../src/operator/sources/followers.ts'
import { aHeartbeatCheck } from '../../../support/builders.ts'

const follows = (name: string, cronJob?: string, namespace = 'shop') =>
  aHeartbeatCheck({
    metadata: { name, namespace, uid: name },
    ...(cronJob && { spec: { sourceRef: { kind: 'CronJob', name: cronJob } } }),
  })

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
