import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../../../src/domain/limits.ts'
import { RESOURCE_DEFINITION } from '../../../../src/operator/schema/definition.ts'
import { REASONS, STALLED_REASONS, type StalledReason } from '../../../../src/operator/schema/reasons.ts'
import { Spec } from '../../../../src/operator/schema/spec.ts'
import { renderManifests } from '../../../../tools/generate/manifests.ts'
import { PROJECT_RULE, SOURCE_RULE, SPEC_CASES } from '../../../support/heartbeat-checks/spec-cases.ts'
import { STATUS_CASES } from '../../../support/heartbeat-checks/status-cases.ts'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly { rule: string; message: string; reason: string }[]
  readonly [keyword: string]: unknown
}

const schema = RESOURCE_DEFINITION.spec.versions[0]!.schema.openAPIV3Schema as Schema
const text = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')

/** Every field with its path, as the cases name it. */
function* walk(field: Schema, path = ''): Generator<{ path: string; field: Schema }> {
  yield { path, field }
  const under = (name: string) => (path === '' ? name : `${path}.${name}`)
  for (const [name, inner] of Object.entries(field.properties ?? {})) yield* walk(inner, under(name))
  if (field.additionalProperties !== undefined) yield* walk(field.additionalProperties, under('*'))
  if (field.items !== undefined) yield* walk(field.items, `${path}[]`)
}

const all = [...walk(schema)]
/** All but the head that every object of Kubernetes has. */
const ours = all.filter(({ path }) => /^(spec|status)/.test(path))
const fieldAt = (wanted: string) => all.find(({ path }) => path === wanted)!.field

describe('the definition', () => {
  it('serves and stores v1 alone', () => {
    const { versions, conversion } = RESOURCE_DEFINITION.spec
    expect(versions.map(({ name, served, storage }) => [name, served, storage])).toEqual([['v1', true, true]])
    expect(conversion).toEqual({ strategy: 'None' })
  })

  it('is made of the limits that the API and the domain have', () => {
    const { periodSeconds, graceSeconds, maxRuntimeSeconds } = LIMITS
    expect(fieldAt('spec.periodSeconds')).toMatchObject({ minimum: periodSeconds.min, maximum: periodSeconds.max })
    expect(fieldAt('spec.graceSeconds')).toMatchObject({ minimum: graceSeconds.min, maximum: graceSeconds.max })
    expect(fieldAt('spec.maxRuntimeSeconds')).toMatchObject({
      minimum: maxRuntimeSeconds.min,
      maximum: maxRuntimeSeconds.max,
    })
    expect(fieldAt('spec.displayName').maxLength).toBe(LIMITS.nameLength)
    expect(fieldAt('spec.description').maxLength).toBe(LIMITS.descriptionLength)
    expect(fieldAt('spec.schedule').maxLength).toBe(LIMITS.scheduleLength)
    expect(fieldAt('spec.project').maxLength).toBe(LIMITS.slugLength)
  })

  it.each([
    ['period_seconds', LIMITS.periodSeconds],
    ['grace_seconds', LIMITS.graceSeconds],
    ['max_runtime_seconds', LIMITS.maxRuntimeSeconds],
  ])('allows no value that the column %s rejects', (column, { max }) => {
    const table = /create table check_states \(([^;]*)\)/.exec(text('test/schema.sql'))?.[1]
    expect(new RegExp(`^\\s*${column} (\\w+)`, 'm').exec(table ?? '')?.[1]).toBe('integer')
    expect(max).toBeLessThan(2 ** 31)
  })

  it('describes every field to a person', () => {
    for (const { path, field } of ours) expect(field.description, path).toMatch(/^\w.{9,}/)
    for (const { path, field } of ours)
      if (/^spec\.\w+$/.test(path))
        expect(field.description, path).toMatch(/Default: |Give either periodSeconds or schedule/)
  })

  it('explains a field in three sentences at most', () => {
    for (const { path, field } of ours) expect(field.description!.split(/[.] (?=[A-Z])/).length, path).toBeLessThan(4)
  })

  it('has a format for every integer, a pattern for every rule that is one, and a type for every list', () => {
    for (const { path, field } of ours) {
      const isOfGeneration = path.endsWith('observedGeneration')
      if (field.type === 'integer') expect(field.format, path).toBe(isOfGeneration ? 'int64' : 'int32')
      if (field.type === 'array') expect(field['x-kubernetes-list-type'], path).toMatch(/^(set|map|atomic)$/)
      const shape = field['x-kubernetes-validations']?.map(({ rule }) => /^self\.matches\(r'(.*)'\)$/.exec(rule)?.[1])
      if (shape?.some(Boolean)) expect(shape, path).toContain(field.pattern)
    }
    expect(fieldAt('spec.schedule').pattern).toMatch(/^\^\(@\(yearly/)
    expect(fieldAt('spec.sourceRef')['x-kubernetes-map-type']).toBe('atomic')
  })

  it('bounds every text, map and list', () => {
    for (const { path, field } of ours) {
      const isBounded = field.enum !== undefined || field.format === 'date-time' || field.maxLength !== undefined
      if (field.type === 'string') expect(isBounded, path).toBe(true)
      if (field.additionalProperties !== undefined) expect(field.maxProperties, path).toBeGreaterThan(0)
      if (field.type === 'array') expect(field.maxItems, path).toBeGreaterThan(0)
    }
  })

  it('defaults few fields, and none whose absence means something', () => {
    const defaults = ours.filter(({ field }) => field.default !== undefined)
    expect(Object.fromEntries(defaults.map(({ path, field }) => [path, field.default]))).toEqual({
      'spec.deletionPolicy': 'Delete',
      'spec.sourceRef.apiGroup': 'batch',
    })
  })

  it('lists the reasons of each condition, and says of what may grow that it may', () => {
    const { description } = fieldAt('status.conditions[].reason')
    for (const reasons of Object.values(REASONS)) for (const reason of reasons) expect(description).toContain(reason)
    for (const path of [
      'spec.publish.kind',
      'spec.sourceRef.apiGroup',
      'spec.sourceRef.kind',
      'status.lastRun.outcome',
      'status.published.kind',
      'status.state',
      'status.conditions[].reason',
    ])
      expect(fieldAt(path).description, path).toMatch(/further values may be added/i)
    for (const path of ['status.published.kind', 'status.state', 'status.lastRun.outcome'])
      expect(fieldAt(path).enum, path).toBeUndefined()
  })

  it('has a page that says what to do about each reason of Stalled', () => {
    const rows = text('docs/use/checks.md')
      .split('\n')
      .map((line) => /^\| `(\w+)` \|/.exec(line)?.[1])
    expect(rows.filter((reason) => STALLED_REASONS.includes(reason as StalledReason))).toEqual(STALLED_REASONS)
  })

  it('has the columns of kubectl, in their order', () => {
    const columns = (isWide: boolean) =>
      RESOURCE_DEFINITION.spec.versions[0]!.additionalPrinterColumns.filter(
        ({ priority = 0 }) => isWide === (priority !== 0),
      ).map(({ name, jsonPath }) => [name, jsonPath])
    expect(columns(false)).toEqual([
      ['State', '.status.state'],
      ['Ready', '.status.conditions[?(@.type=="Ready")].status'],
      ['Schedule', '.status.cadence'],
      ['Last Ping', '.status.lastPingTime'],
      ['Last Run', '.status.lastRun.outcome'],
      ['Why', '.status.reason'],
      ['Age', '.metadata.creationTimestamp'],
    ])
    expect(columns(true)).toEqual([
      ['Grace', '.status.graceSeconds'],
      ['Time Zone', '.status.timeZone'],
      ['Run Reason', '.status.lastRun.reason'],
      ['Published', '.status.published.name'],
      ['Since', '.status.stateTime'],
    ])
  })

  it('stays small enough for a client-side apply', () => {
    // The annotation that such an apply leaves may have 262,144 bytes.
    expect(text('crds/heartbeatchecks.yaml').length).toBeLessThan(60_000)
  })
})

/** Keywords that reject something, apart from `type`, which every field has. */
const KEYWORDS = ['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'enum', 'maxProperties', 'maxItems']

function* rulesOf({ path, field }: { path: string; field: Schema }): Generator<string> {
  for (const keyword of KEYWORDS) if (field[keyword] !== undefined) yield `${path} ${keyword}`
  if (field.format === 'date-time') yield `${path} format`
  for (const name of field.required ?? []) yield `${path} required ${name}`
  if (field['x-kubernetes-list-type'] === 'set') yield `${path} x-kubernetes-list-type`
  if (field['x-kubernetes-list-map-keys'] !== undefined) yield `${path} x-kubernetes-list-map-keys`
  for (const { message } of field['x-kubernetes-validations'] ?? []) yield `${path} ${message}`
}

describe('the cases', () => {
  it('cover every rule, and no other', () => {
    const covered = [...SPEC_CASES, ...STATUS_CASES, PROJECT_RULE, SOURCE_RULE].map(
      ({ field, rule }) => `${field} ${rule}`,
    )
    expect([...new Set(covered)].toSorted()).toEqual(all.flatMap((entry) => [...rulesOf(entry)]).toSorted())
  })

  it.each(SPEC_CASES)('$field: $rule: our own schema agrees', ({ accepted, refused, at }) => {
    expect(Spec.safeParse(accepted.spec).error).toBeUndefined()
    const { error } = Spec.safeParse(refused.spec)
    const paths = (error?.issues ?? []).map(({ path }) => ['spec', ...path].join('.'))
    expect(paths).toContain(at.replace(/\[(\w+)\]/, '.$1'))
    expect(new Set(paths).size).toBe(1)
  })
})

describe('what is made is up to date: run `npm run manifests`', () => {
  it.each([...renderManifests()])('%s', (path, made) => {
    expect(text(path)).toBe(made)
  })
})
