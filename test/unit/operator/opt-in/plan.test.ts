import { describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { readAnnotations } from '../../../../src/operator/opt-in/annotations.ts'
import { type OptInSource, plan } from '../../../../src/operator/opt-in/plan.ts'
import { aHeartbeatCheck } from '../../../support/builders.ts'

const OURS = '11111111-1111-4111-8111-111111111111'
const THEIRS = '22222222-2222-4222-8222-222222222222'
const CLAIMS = { installation: OURS, takeOver: null, takenOver: new Set<string>() }
const GROUP = 'heartbeat-operator.io'

function aSource(metadata: Partial<OptInSource['metadata']> = {}): OptInSource {
  return { metadata: { namespace: 'shop', name: 'backup', uid: 'cron-uid', resourceVersion: '7', ...metadata } }
}

interface Given {
  readonly spec?: object
  readonly metadata?: object
  /** Null: it has no status yet. */
  readonly installation?: string | null
}

const OWNER = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'backup', uid: 'cron-uid', controller: true }
const ownedBy = (changes: object) => ({ ownerReferences: [{ ...OWNER, ...changes }] })

/** As the operator creates it. */
function aCheck({ spec = {}, metadata = {}, installation = OURS }: Given = {}): HeartbeatCheck {
  return aHeartbeatCheck({
    metadata: {
      name: 'backup',
      uid: 'check-uid',
      resourceVersion: '9',
      labels: { 'app.kubernetes.io/managed-by': 'heartbeat-operator' },
      ...ownedBy({ blockOwnerDeletion: false }),
      ...metadata,
    },
    spec: { sourceRef: { kind: 'CronJob', name: 'backup' }, ...spec },
    ...(installation === null ? {} : { status: { installation } }),
  })
}

const yes = { isWatched: true, because: 'label of the CronJob' } as const
const no = { isWatched: false, because: 'no label' } as const
const unknown = { isWatched: null, because: 'Namespace unknown' } as const

function planFor(
  object: HeartbeatCheck | undefined,
  decision: typeof yes | typeof no | typeof unknown = yes,
  source = aSource(),
  projectsInstead: readonly string[] | null = null,
) {
  return plan(
    { source, object, decision, claims: CLAIMS, projectsInstead },
    readAnnotations(source.metadata.annotations),
  )
}
const annotated = (annotations: Record<string, string>) =>
  aSource({
    annotations: Object.fromEntries(Object.entries(annotations).map(([name, text]) => [`${GROUP}/${name}`, text])),
  })
const NOTHING = { action: { kind: 'none' }, warnings: [] }
const byOthers = (spec: object = { periodSeconds: 60, sourceRef: undefined }) =>
  aCheck({ spec, metadata: { labels: undefined, ownerReferences: undefined } })

describe('a watched CronJob without a HeartbeatCheck', () => {
  it('gets one that it owns, without labels or annotations by which GitOps tools and Helm know their objects', () => {
    const source = aSource({
      labels: { [`${GROUP}/watch`]: 'true', 'app.kubernetes.io/instance': 'shop', 'helm.sh/chart': 'shop-1' },
      annotations: { 'argocd.argoproj.io/tracking-id': 'shop:batch/CronJob:shop/backup' },
    })
    expect(planFor(undefined, yes, source)).toEqual({
      action: {
        kind: 'create',
        object: {
          apiVersion: 'heartbeat-operator.io/v1',
          kind: 'HeartbeatCheck',
          metadata: {
            namespace: 'shop',
            name: 'backup',
            labels: { 'app.kubernetes.io/managed-by': 'heartbeat-operator' },
            ...ownedBy({ blockOwnerDeletion: false }),
          },
          spec: { sourceRef: { kind: 'CronJob', name: 'backup' } },
        },
      },
      warnings: [],
    })
  })

  it('gets the fields of its annotations, and a warning of each that is invalid', () => {
    const { action, warnings } = planFor(undefined, yes, annotated({ 'grace-seconds': '600', project: 'No!' }))
    expect(action).toMatchObject({ kind: 'create', object: { spec: { graceSeconds: 600 } } })
    expect(action).not.toHaveProperty('object.spec.project')
    expect(warnings).toEqual([{ reason: 'InvalidAnnotation', note: expect.stringContaining(`${GROUP}/project`) }])
  })

  it('may have a name of 253 characters', () => {
    const name = 'n'.repeat(253)
    const { action } = planFor(undefined, yes, aSource({ name }))
    expect(action).toMatchObject({ object: { metadata: { name, ownerReferences: [{ name }] } } })
  })

  it('gets none while it is being deleted, else the garbage collector would delete one after the other', () => {
    expect(planFor(undefined, yes, aSource({ deletionTimestamp: '2026-01-01T00:00:00Z' }))).toEqual(NOTHING)
  })

  it.each([no, unknown])('gets none without a label, and while its Namespace is not known: %o', (decision) => {
    expect(planFor(undefined, decision)).toEqual(NOTHING)
  })
})

describe('a HeartbeatCheck that the operator created', () => {
  it('stays as it is', () => {
    expect(planFor(aCheck())).toEqual(NOTHING)
    expect(planFor(aCheck({ spec: { graceSeconds: 600 } }), yes, annotated({ 'grace-seconds': '600' }))).toEqual(
      NOTHING,
    )
  })

  it('follows its annotations: new, changed and removed ones, and no other field', () => {
    const object = aCheck({ spec: { graceSeconds: 600, description: 'old', publish: { kind: 'Secret' }, tags: ['a'] } })
    expect(planFor(object, yes, annotated({ 'grace-seconds': '900', 'display-name': 'Backup' }))).toEqual({
      action: {
        kind: 'update',
        patch: {
          metadata: { uid: 'check-uid', resourceVersion: '9' },
          spec: { graceSeconds: 900, displayName: 'Backup', description: null },
        },
      },
      warnings: [],
    })
  })

  it('has the default of an annotation that became invalid', () => {
    const object = aCheck({ spec: { graceSeconds: 600 } })
    const { action, warnings } = planFor(object, yes, annotated({ 'grace-seconds': '10 min' }))
    expect(action).toMatchObject({ patch: { spec: { graceSeconds: null } } })
    expect(warnings).toHaveLength(1)
  })

  it.each([
    ['payments', undefined, 'is "payments" now, and the HeartbeatCheck backup stays in its default project'],
    ['payments', 'shop', 'is "payments" now, and the HeartbeatCheck backup stays in the project "shop"'],
    [undefined, 'shop', 'was removed, and the HeartbeatCheck backup stays in the project "shop"'],
  ])('keeps its project: annotation %s, project %s', (annotation, project, says) => {
    const object = aCheck({ spec: { project } })
    const source = annotation === undefined ? aSource() : annotated({ project: annotation })
    expect(planFor(object, yes, source)).toEqual({
      action: { kind: 'none' },
      warnings: [
        {
          reason: 'InvalidAnnotation',
          note: `annotation ${GROUP}/project ${says}, which cannot be changed: to apply it, delete the HeartbeatCheck (kubectl delete heartbeatcheck backup), and the operator creates it again`,
        },
      ],
    })
  })

  it('has its project when the annotation names one that the namespace may not use, and no advice to delete it', () => {
    const remedy =
      '. Once the namespace may use it, delete the HeartbeatCheck (kubectl delete heartbeatcheck backup), and the operator creates it again'
    const note = (used: string) => [
      {
        reason: 'InvalidAnnotation',
        note: `annotation ${GROUP}/project must name a project that the namespace may use (shop, one), and is "payments": ${used}`,
      },
    ]
    const source = annotated({ project: 'payments', 'grace-seconds': '60' })
    const made = planFor(undefined, yes, source, ['shop', 'one'])
    expect(made).toMatchObject({ action: { kind: 'create', object: { spec: { graceSeconds: 60 } } } })
    expect(made).not.toHaveProperty('action.object.spec.project')
    expect(made.warnings).toEqual(note(`the default is used${remedy}`))
    const kept = (spec: object) =>
      planFor(aCheck({ spec: { graceSeconds: 60, ...spec } }), yes, source, ['shop', 'one'])
    expect(kept({})).toEqual({ action: { kind: 'none' }, warnings: made.warnings })
    expect(kept({ project: 'one' })).toEqual({
      action: { kind: 'none' },
      warnings: note(`the HeartbeatCheck stays in "one"${remedy}`),
    })
    // The namespace may not use it any more.
    expect(kept({ project: 'payments' }).warnings).toEqual(note('the HeartbeatCheck stays in "payments"'))
    const many = Array.from({ length: 9 }, (_, index) => `p${index}`)
    expect(planFor(undefined, yes, source, many).warnings[0]?.note).toContain(
      '(p0, p1, p2, p3, p4, p5, p6, p7 and 1 more)',
    )
    expect(planFor(undefined, yes, source, []).warnings[0]?.note).toContain('(only its own)')
  })

  it('has one warning of an invalid project, not two', () => {
    const { warnings } = planFor(aCheck({ spec: { project: 'shop' } }), yes, annotated({ project: 'No!' }))
    expect(warnings).toEqual([{ reason: 'InvalidAnnotation', note: expect.stringContaining('and is "No!"') }])
  })

  it('is deleted in this version when the label goes', () => {
    expect(planFor(aCheck(), no)).toEqual({
      action: { kind: 'delete', uid: 'check-uid', resourceVersion: '9' },
      warnings: [],
    })
  })

  it('is not deleted while its Namespace is not known', () => {
    expect(planFor(aCheck(), unknown)).toEqual(NOTHING)
  })

  it('is not deleted before an installation has claimed it: another one may have created it', () => {
    expect(planFor(aCheck({ installation: null }), no).action).toEqual({ kind: 'wait' })
  })

  it.each([
    ['of another installation', aCheck({ installation: THEIRS })],
    ['that is being deleted', aCheck({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    ['of a CronJob that had the name before', aCheck({ metadata: ownedBy({ uid: 'older-uid' }) })],
  ])('is neither changed nor deleted: one %s', (_, object) => {
    for (const decision of [yes, no])
      expect(planFor(object, decision, annotated({ 'grace-seconds': '60' }))).toEqual(NOTHING)
  })

  it('of another installation is deleted after TAKE_OVER names that one', () => {
    const claims = { ...CLAIMS, takeOver: THEIRS }
    const object = aCheck({ installation: THEIRS })
    const facts = { source: aSource(), object, decision: no, claims, projectsInstead: null }
    expect(plan(facts, readAnnotations()).action.kind).toBe('delete')
  })
})

describe('a HeartbeatCheck of that name that others created', () => {
  it.each([yes, no, unknown])('is never changed: %o', (decision) => {
    const object = byOthers({ graceSeconds: 60 })
    expect(planFor(object, decision, annotated({ 'grace-seconds': '900', project: 'x' }))).toEqual(NOTHING)
  })

  it('takes the name, unless it follows the CronJob', () => {
    const { action, warnings } = planFor(byOthers())
    expect(action).toEqual({ kind: 'none' })
    expect(warnings).toEqual([
      {
        reason: 'NameTaken',
        note: 'the HeartbeatCheck backup exists, the operator has not created it, and it does not follow this CronJob, so the CronJob is not monitored: delete that HeartbeatCheck, or create it with spec.sourceRef {kind: CronJob, name: backup}; or exclude the CronJob with the label heartbeat-operator.io/watch: "false"',
      },
    ])
    expect(planFor(byOthers({ sourceRef: { kind: 'CronJob', name: 'other' } })).warnings).toHaveLength(1)
    expect(planFor(byOthers({ sourceRef: { kind: 'CronWorkflow', name: 'backup' } })).warnings).toHaveLength(1)
    expect(planFor(byOthers({})).warnings).toEqual([])
    expect(planFor(byOthers(), no).warnings).toEqual([])
  })

  it.each([
    ['lost its label', { labels: {} }],
    ['lost its owner', { ownerReferences: [] }],
    ['has an owner that does not control it', ownedBy({ controller: undefined })],
    ['belongs to a Job', ownedBy({ kind: 'Job' })],
    ['belongs to another kind', ownedBy({ apiVersion: 'shop/v1' })],
  ])('is any that %s', (_, metadata) => {
    expect(planFor(aCheck({ metadata }), no, annotated({ 'grace-seconds': '900' }))).toEqual(NOTHING)
  })
})

it('a label with another value is a warning, watched or not, unless the CronJob is being deleted', () => {
  const labels = { [`${GROUP}/watch`]: 'True' }
  const warnings = [{ reason: 'InvalidLabel', note: expect.stringContaining('is "True"') }]
  expect(planFor(undefined, no, aSource({ labels }))).toEqual({ ...NOTHING, warnings })
  expect(planFor(aCheck(), yes, aSource({ labels }))).toEqual({ ...NOTHING, warnings })
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  expect(planFor(undefined, no, aSource({ labels, deletionTimestamp }))).toEqual(NOTHING)
})
