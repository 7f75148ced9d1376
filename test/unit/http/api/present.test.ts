import { expect, it } from 'vitest'
import { z } from 'zod'
import * as field from '../../../../src/http/api/fields.ts'
import { inCamelCase, present } from '../../../../src/http/api/present.ts'
import { NOON } from '../../../support/builders.ts'

const Run = z.object({ exit_code: z.int().nullable(), ended_at: field.instant('').nullable() })
const Thing = z.object({
  last_runs: z.array(Run),
  labels: z.record(z.string(), z.string()),
  note: z.string().optional(),
})

it('shows the fields that the schema declares under its names, and no others', () => {
  const run = { exitCode: 1, endedAt: NOON, secret: 'hidden' }
  const thing = { lastRuns: [run, { exitCode: null, endedAt: null }], labels: { createdBy: 'ada' }, secret: 'hidden' }
  expect(present(Thing, thing)).toEqual({
    last_runs: [
      { exit_code: 1, ended_at: new Date(NOON).toISOString() },
      { exit_code: null, ended_at: null },
    ],
    labels: { createdBy: 'ada' },
  })
})

it('shows a member of a union by the field that distinguishes its members', () => {
  const One = z.object({ kind: z.literal('one'), first_url: z.string() })
  const Other = z.object({ kind: z.literal('other'), names: z.array(z.string()) })
  const Either = z.discriminatedUnion('kind', [One, Other])
  expect(present(Either, { kind: 'one', firstUrl: 'a' })).toEqual({ kind: 'one', first_url: 'a' })
  expect(present(Either, { kind: 'other', names: ['b'] })).toEqual({ kind: 'other', names: ['b'] })
})

it('shows fields that have their names in the document already, as the config of a channel', () => {
  const Config = z.object({ config: z.object({ chat_id: z.string(), thread_id: z.int().optional() }).nullable() })
  expect(present(Config, { config: { chat_id: 'a' } } as never)).toEqual({ config: { chat_id: 'a' } })
  expect(present(Config, { config: null })).toEqual({ config: null })
})

it('gives the fields of a request the names of the verbs, without those that are left out', () => {
  expect(inCamelCase({ period_seconds: 60, name: null, slug: undefined })).toEqual({ periodSeconds: 60, name: null })
})
