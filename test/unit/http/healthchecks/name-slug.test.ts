import { expect, it } from 'vitest'
import { slugOfName } from '../../../../src/http/healthchecks/name-slug.ts'

it.each([
  ['db_backup', 'db_backup'],
  ['foo_bar baz', 'foo_bar-baz'],
  ['db.backup/main', 'dbbackupmain'],
  ['Foo -- Bar', 'foo-bar'],
  ['_-2nd Backup-_', '2nd-backup'],
  ['a-_-b', 'a-_-b'],
  ['Café Zürich №1', 'cafe-zurich-no1'],
  ['x\u00a0y', 'x-y'],
  [`${'㏂'.repeat(20)}b`, `${'am'.repeat(20)}b`],
  ['㎒'.repeat(100), `${'mhz'.repeat(33)}m`],
])('a name of healthchecks, %s, has its slug %s', (name, slug) => {
  expect(slugOfName(name)).toBe(slug)
})

it.each([
  ['Резервная копия', 'rezervnaya-kopiya'],
  ['!!!', 'check'],
  ['___', 'check'],
])('of a name that it makes nothing of, %s, ours is %s', (name, slug) => {
  expect(slugOfName(name)).toBe(slug)
})
