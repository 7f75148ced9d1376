import { expect, it } from 'vitest'
import { z } from 'zod'
import { NewChannel } from '../../../../src/http/api/channels.ts'
import { CheckUpdate, NewCheck } from '../../../../src/http/api/checks.schema.ts'
import { explainUnknown, parsePart } from '../../../../src/http/api/faults.ts'
import { findNearest } from '../../../../src/http/api/nearest.ts'

const FIELDS = Object.keys(NewCheck.shape)

it.each([
  ['perod_seconds', 'period_seconds'],
  ['periodSeconds', 'period_seconds'],
  ['period-seconds', 'period_seconds'],
  ['period', 'period_seconds'],
  ['grace', 'grace_seconds'],
  ['timezone', 'time_zone'],
  ['shcedule', 'schedule'],
  ['desc', 'description'],
  ['tag', 'tags'],
  ['projectId', 'project_id'],
  ['max_runtime', 'max_runtime_seconds'],
])('%s is nearest to %s', (name, nearest) => {
  expect(findNearest(name, FIELDS)).toBe(nearest)
})

it.each(['timeout', 'surprise', 'id', 'x', '', '__proto__', 'constructor', 's'.repeat(41), 'managed_by'])(
  '%s is near to none',
  (name) => {
    expect(findNearest(name, FIELDS)).toBeNull()
  },
)

it('an error names the nearest field of the object that lacks the field, at any depth', () => {
  const config = { urls: ['https://am.example.com'], label: {} }
  expect(() => parsePart('body', NewChannel, { kind: 'alertmanager', name: 'x', Muted: true, config })).toThrow(
    expect.objectContaining({
      details: [
        { path: 'body.config.label', message: 'is not a known field; the nearest known one is labels' },
        { path: 'body.Muted', message: 'is not a known field; the nearest known one is muted' },
      ],
    }),
  )
})

it.each([
  [99, 99],
  [100, 100],
  [999, 100],
])('of %i unknown names %i get a text and are listed: each text takes its time', (count, listed) => {
  const schema = z.strictObject({ name: z.string() })
  const described: PropertyKey[] = []
  const texts = new Proxy<Record<string, string>>(
    {},
    { getOwnPropertyDescriptor: (_, key) => void described.push(key) },
  )
  explainUnknown(schema, texts)
  const fields = Object.fromEntries(Array.from({ length: count }, (_, index) => [`surprise_${index}`, 0]))
  expect(() => parsePart('body', schema, { name: 'x', ...fields })).toThrow(
    expect.objectContaining({ details: expect.toSatisfy((details: unknown[]) => details.length === listed) }),
  )
  expect(described).toHaveLength(listed)
})

it('a field with a text of its own has it in the object that it belongs to, and only there', () => {
  const messageOf = (schema: typeof NewCheck | typeof CheckUpdate, fields: object) => {
    try {
      parsePart('body', schema, fields)
      return null
    } catch (error) {
      return (error as Error).message
    }
  }
  const project_id = '0199aaaa-0000-7000-8000-00000000000a'
  expect(messageOf(CheckUpdate, { project_id })).toMatch(/^project_id cannot be changed: /)
  expect(messageOf(NewCheck, { project_id, name: 'x' })).toBeNull()
  expect(messageOf(NewCheck, { project_id, name: 'x', status: 'up' })).toMatch(/^status .*\/pause .*\/resume /)
})
