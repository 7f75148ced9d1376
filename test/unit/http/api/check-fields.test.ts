/** The rules of a check's fields; that each field of the API has its rule: test/http/api/checks.test.ts. */

import { expect, it } from 'vitest'
import { LABEL_NAME_RULE, LABEL_VALUE_RULE } from '../../../../src/domain/labels.ts'
import { NewCheck } from '../../../../src/http/api/checks.schema.ts'
import { parsePart } from '../../../../src/http/api/faults.ts'

const VALID = { project_id: '0199aaaa-0000-7000-8000-00000000000a', name: 'x' }

const INTEGER = (min: number, max = 31_536_000) => `must be an integer from ${min} to ${max}`
const NAME = 'name must be text of 1 to 100 characters, without control characters'
const SLUG = 'slug must be 1 to 100 characters of a-z, 0-9, - and _, and begin and end with a letter or digit'
const TEXT =
  'description must be text of at most 4096 characters, without control characters other than line breaks and tabs'
const TAG = 'must be a tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -'
const TAGS = 'tags must be a list of at most 20 different tags'
const LABELS = 'labels must be an object of at most 32 labels'
const many = (count: number) => Array.from({ length: count }, (_, index) => `w-${index}`)
it.each<[object, string]>([
  [{ name: undefined }, 'name is required'],
  [{ name: null }, 'name cannot be null'],
  [{ name: 7 }, NAME],
  [{ name: '' }, NAME],
  [{ name: ' \t ' }, NAME],
  [{ name: '\u200b' }, NAME],
  [{ name: ' \u3164\u0301\ufe0f' }, NAME],
  [{ name: 'x'.repeat(101) }, NAME],
  [{ name: '💾'.repeat(101) }, NAME],
  [{ name: 'a\nb' }, NAME],
  [{ name: 'a\u0000b' }, NAME],
  [{ name: 'a\u0085b' }, NAME],
  [{ name: 'a\ud800b' }, NAME],
  [{ slug: '' }, SLUG],
  [{ slug: null }, 'slug cannot be null'],
  [{ slug: 'Backup' }, SLUG],
  [{ slug: '-backup' }, SLUG],
  [{ slug: 'backup_' }, SLUG],
  [{ slug: 'a'.repeat(101) }, SLUG],
  [{ slug: `${'a'.repeat(60_000)}!` }, SLUG],
  [{ description: 'x'.repeat(4_097) }, TEXT],
  [{ description: 'a\u0000' }, TEXT],
  [{ description: 'a\u001b[31m' }, TEXT],
  [{ description: {} }, TEXT],
  [{ period_seconds: 9 }, `period_seconds ${INTEGER(10)}`],
  [{ period_seconds: 31_536_001 }, `period_seconds ${INTEGER(10)}`],
  [{ period_seconds: 60.5 }, `period_seconds ${INTEGER(10)}`],
  [{ period_seconds: '60' }, `period_seconds ${INTEGER(10)}`],
  [{ period_seconds: null }, 'period_seconds cannot be null'],
  [{ period_seconds: true }, `period_seconds ${INTEGER(10)}`],
  [{ period_seconds: 1e300 }, `period_seconds ${INTEGER(10)}`],
  [{ grace_seconds: -1 }, `grace_seconds ${INTEGER(0)}`],
  [{ grace_seconds: 31_536_001 }, `grace_seconds ${INTEGER(0)}`],
  [{ grace_seconds: null }, 'grace_seconds cannot be null'],
  [{ max_runtime_seconds: 0 }, `max_runtime_seconds ${INTEGER(1)}`],
  [{ max_runtime_seconds: 31_536_001 }, `max_runtime_seconds ${INTEGER(1)}`],
  [{ project_id: undefined }, 'project_id is required'],
  [{ project_id: 'x' }, 'project_id must be a UUID'],
  [{ project_id: null }, 'project_id cannot be null'],
  [{ schedule: null }, 'schedule cannot be null'],
  [{ schedule: '* '.repeat(101) }, 'schedule must be a cron expression of at most 200 characters'],
  [{ tags: many(21) }, TAGS],
  [{ tags: ['a', 'b', 'a'] }, TAGS],
  [{ tags: 'a' }, TAGS],
  [{ tags: null }, 'tags cannot be null'],
  ...['', 't'.repeat(51), 'a b', 'a\n', 'é', 1].map((tag): [object, string] => [{ tags: ['a', tag] }, `tags.1 ${TAG}`]),
  [{ labels: Object.fromEntries(many(33).map((name) => [name, ''])) }, LABELS],
  [{ labels: ['a'] }, LABELS],
  [{ labels: 'a=b' }, LABELS],
  [{ labels: null }, 'labels cannot be null'],
  // Which names and values are right: test/unit/domain/labels.test.ts.
  [{ labels: { 'Example.com/a': '' } }, `labels.Example.com/a ${LABEL_NAME_RULE}`],
  [{ labels: { '': 'a' } }, `labels. ${LABEL_NAME_RULE}`],
  [JSON.parse('{"labels": {"__proto__": "a"}}'), `labels.__proto__ ${LABEL_NAME_RULE}`],
  [{ labels: { a: 'b c' } }, `labels.a ${LABEL_VALUE_RULE}`],
  [{ labels: { a: 1 } }, `labels.a ${LABEL_VALUE_RULE}`],
  [{ managed_by: 'api' }, 'managed_by is not a known field'],
  [{ id: 'x' }, 'id is not a known field'],
])('a check with %j is refused', (fields, message) => {
  const [name] = message.split(' ')
  const given = JSON.parse(JSON.stringify({ ...VALID, ...fields }))
  expect(() => parsePart('body', NewCheck, given)).toThrow(
    expect.objectContaining({ message, details: [{ path: `body.${name}`, message: message.slice(name!.length + 1) }] }),
  )
})
