/** The limits of the domain, which the edges and the CRD enforce, hold in the database too: both sides of each. */

import { beforeAll, expect, it } from 'vitest'
import { TAGS } from '../../src/domain/check.ts'
import { LABELS } from '../../src/domain/labels.ts'
import { LIMITS } from '../../src/domain/limits.ts'
import { use } from '../support/use.ts'
import { addCheck, addTenant, createFixture } from './checks/fixture.ts'

let key: number
const fixture = use(createFixture)
beforeAll(async () => {
  key = (await addCheck(fixture, await addTenant(fixture))).key
})

const { periodSeconds, graceSeconds, maxRuntimeSeconds, nameLength, slugLength, descriptionLength } = LIMITS
/** A character outside the basic plane: lengths are counted in code points. */
const LETTER = '𝄞'
const manyTags = (count: number) => Array.from({ length: count }, (_, index) => `tag-${index}`)
const manyLabels = (count: number) => Object.fromEntries(manyTags(count).map((name) => [name, '']))

it.each<[string, string, unknown, unknown]>([
  ['check_states', 'period_seconds', periodSeconds.min, periodSeconds.min - 1],
  ['check_states', 'period_seconds', periodSeconds.max, periodSeconds.max + 1],
  ['check_states', 'grace_seconds', graceSeconds.min, graceSeconds.min - 1],
  ['check_states', 'grace_seconds', graceSeconds.max, graceSeconds.max + 1],
  ['check_states', 'max_runtime_seconds', maxRuntimeSeconds.min, maxRuntimeSeconds.min - 1],
  ['check_states', 'max_runtime_seconds', maxRuntimeSeconds.max, maxRuntimeSeconds.max + 1],
  ['checks', 'name', LETTER.repeat(nameLength), LETTER.repeat(nameLength + 1)],
  ['checks', 'name', LETTER, ''],
  ['checks', 'slug', 's'.repeat(slugLength), 's'.repeat(slugLength + 1)],
  ['checks', 'slug', 's', ''],
  ['checks', 'description', LETTER.repeat(descriptionLength), LETTER.repeat(descriptionLength + 1)],
  ['checks', 'tags', manyTags(TAGS.max), manyTags(TAGS.max + 1)],
  ['checks', 'tags', [], ['']],
  ['checks', 'tags', ['t'.repeat(50)], ['t'.repeat(51)]],
  ['checks', 'tags', ['aZ09_.:/-'], ['a b']],
  ['checks', 'tags', ['a', 'A', 'aa'], ['a', 'b', 'a']],
  ['checks', 'tags', ['a'], ['a', null]],
  ['checks', 'labels', manyLabels(LABELS.max), manyLabels(LABELS.max + 1)],
  ['checks', 'labels', {}, '[]'],
  ['checks', 'labels', { ['n'.repeat(63)]: 'v'.repeat(63) }, { ['n'.repeat(64)]: 'v' }],
  ['checks', 'labels', { [`${'p'.repeat(253)}/n`]: '' }, { [`${'p'.repeat(254)}/n`]: '' }],
  ['checks', 'labels', { 'a.b-c/A_b.C-9': '' }, { 'A.b/c': '' }],
  ['checks', 'labels', { a: 'Z_z.9-0' }, { a: 'v'.repeat(64) }],
  ['checks', 'labels', { a: '' }, { '': 'a' }],
  ['checks', 'labels', { a: '1' }, { a: 1 }],
  ['checks', 'labels', { a: 'x' }, { a: 'x\n' }],
])('%s.%s takes its limit and refuses what is beyond it', async (table, column, within, beyond) => {
  const write = (value: unknown) =>
    fixture.database.query(
      `update ${table} set ${column} = $2 where ${table === 'checks' ? 'key' : 'check_key'} = $1`,
      [key, value],
    )
  expect((await write(within)).rowCount).toBe(1)
  await expect(write(beyond)).rejects.toMatchObject({ code: '23514' })
})
