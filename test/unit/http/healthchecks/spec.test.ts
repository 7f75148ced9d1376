import { describe, expect, it } from 'vitest'
import { readSpec } from '../../../../src/http/healthchecks/spec.ts'

/** The text of the error, or what was read. */
function read(body: Record<string, unknown>): unknown {
  try {
    return readSpec(body)
  } catch (error) {
    return (error as Error).message
  }
}
const fault = (text: string) => `json validation error: ${text}`

describe('fields of a check in requests', () => {
  it('are all optional, and unknown ones are ignored', () => {
    expect(read({})).toEqual({})
    expect(read({ api_key: 'x', colour: 1, toString: null })).toEqual({})
  })

  it.each([
    [{ timeout: 60 }, { timeout: 60 }],
    [
      { timeout: 31_536_000, grace: 60 },
      { timeout: 31_536_000, grace: 60 },
    ],
    [{ name: '  x ' }, { name: 'x' }],
    [{ name: '' }, { name: '' }],
    [{ name: '\u200b' }, { name: '' }],
    [{ name: '😀'.repeat(100) }, { name: '😀'.repeat(100) }],
    [{ slug: 'a_b-9' }, { slug: 'a_b-9' }],
    [{ slug: '' }, { slug: '' }],
    [{ tags: ' a  b a ' }, { tags: ['a', 'b'] }],
    [{ tags: '' }, { tags: [] }],
    [
      { schedule: ' 15 5 * * * ', tz: 'Europe/Riga' },
      { schedule: '15 5 * * *', tz: 'Europe/Riga' },
    ],
    [{ unique: ['name', 'tags'] }, { unique: ['name', 'tags'] }],
    [{ unique: [] }, { unique: [] }],
    [
      { manual_resume: true, channels: '*' },
      { manual_resume: true, channels: '*' },
    ],
    // The defaults of what has no counterpart.
    [{ methods: '', subject: '', start_kw: '', filter_subject: false, filter_default_fail: false }, {}],
  ])('%j is accepted', (body, spec) => expect(read(body)).toEqual(spec))

  it.each([
    [{ timeout: 59 }, 'timeout is too small'],
    [{ timeout: 31_536_001 }, 'timeout is too large'],
    [{ timeout: '60' }, 'timeout is not a number'],
    [{ timeout: 60.5 }, 'timeout is not a number'],
    [{ timeout: null }, 'timeout is not a number'],
    [{ grace: 0 }, 'grace is too small'],
    [{ grace: 31_536_001 }, 'grace is too large'],
    [{ name: 123 }, 'name is not a string'],
    [{ name: null }, 'name is not a string'],
    [{ name: 'x'.repeat(101) }, 'name is too long'],
    [{ name: 'a\u0000b' }, 'name has characters that cannot be stored'],
    [{ desc: 'x'.repeat(4_097) }, 'desc is too long'],
    [{ slug: 'Hello' }, 'slug does not match pattern'],
    [{ slug: '-a' }, 'slug does not match pattern'],
    [{ slug: 'a'.repeat(101) }, 'slug is too long'],
    [{ tags: ['a'] }, 'tags is not a string'],
    [{ tags: Array.from({ length: 21 }, (_, index) => `t${index}`).join(' ') }, 'tags has more than 20 tags'],
    [{ tags: 'ä' }, 'tags has a tag with other characters than A-Z, a-z, 0-9, _, ., :, / and -, or with more than 50'],
    [{ schedule: '* * * * 99' }, 'schedule is not a valid cron or OnCalendar expression'],
    [{ schedule: '0 0 30 2 *' }, 'schedule is not a valid cron or OnCalendar expression'],
    [
      { schedule: '*-*~1 12:00' },
      'schedule is not a valid cron or OnCalendar expression (OnCalendar is not supported here)',
    ],
    [{ schedule: '1'.repeat(101) }, 'schedule is too long'],
    [{ schedule: 5 }, 'schedule is not a string'],
    [{ tz: 'Mars/Base' }, 'tz is not a valid timezone'],
    [{ tz: 1 }, 'tz is not a string'],
    [{ unique: 'name' }, 'unique is not an array'],
    [{ unique: ['status'] }, "an item in 'unique' has unexpected value"],
    [{ unique: [['name']] }, "an item in 'unique' has unexpected value"],
    [{ manual_resume: 1 }, 'manual_resume is not a boolean'],
    [{ methods: 'PUT' }, 'methods has unexpected value'],
    [{ methods: 'POST' }, 'methods is not supported here: only "" is accepted'],
    [{ start_kw: 'START' }, 'start_kw is not supported here: only "" is accepted'],
    [{ success_kw: 1 }, 'success_kw is not a string'],
    [{ failure_kw: 'x'.repeat(201) }, 'failure_kw is too long'],
    [{ subject: 'x' }, 'subject is not supported here: only "" is accepted'],
    [{ filter_body: true }, 'filter_body is not supported here: only false is accepted'],
    [{ filter_http_body: 'yes' }, 'filter_http_body is not a boolean'],
    [{ channels: ['a'] }, 'channels is not a string'],
  ])('%j is rejected', (body, text) => expect(read(body)).toBe(fault(text)))

  it('reports the first wrong field in the order of healthchecks', () => {
    expect(read({ unique: 1, timeout: 1, name: 5 })).toBe(fault('name is not a string'))
  })
})
