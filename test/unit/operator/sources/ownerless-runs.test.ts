/** Which CronJob a Job belongs to that names no owner (docs/use/cronjobs.md, "What is recorded"). */

import { expect, it } from 'vitest'
import type { KubernetesObject } from '../../../../src/kubernetes/objects.ts'
import { cronJob } from '../../../../src/operator/sources/kinds/cron-job.ts'
import { createOwnerlessRuns } from '../../../../src/operator/sources/ownerless-runs.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'

const at = (second: number) => `2026-11-23T02:00:${String(second).padStart(2, '0')}Z`
const metaOf = (name: string, createdAt: number, namespace = 'shop') => ({
  namespace,
  name,
  uid: `${namespace}/${name}@${createdAt}`,
  resourceVersion: '1',
  creationTimestamp: at(createdAt),
})
const sourceOf = (name: string, createdAt = 0, namespace?: string) =>
  cronJob.trimSource({ metadata: metaOf(name, createdAt, namespace) } as KubernetesObject)
const jobOf = (name: string, createdAt = 30, more: object = {}) => {
  const annotations = { 'cronjob.kubernetes.io/instantiate': 'manual' }
  return cronJob.trimRun({ metadata: { ...metaOf(name, createdAt), annotations, ...more } } as KubernetesObject)
}

/** @param names of the CronJobs that exist */
function open(...names: string[]) {
  const known = new Map<string, Source>()
  const runs = createOwnerlessRuns({ get: (key) => known.get(key), values: () => known.values() })
  const add = (source: Source) => {
    known.set(`${source.metadata.namespace}/${source.metadata.name}`, source)
    return runs.review(source)
  }
  for (const name of names) add(sourceOf(name))
  return { ...runs, add, remove: (name: string) => known.delete(`shop/${name}`) }
}

const nameOf = (uid: string | null | undefined) => uid?.replace(/^shop\//, '').replace(/@0$/, '') ?? null
const ownerOf = (job: string, ...names: string[]) =>
  nameOf(open(...names).own({ before: undefined, after: jobOf(job) }).after!.sourceUid)

const LONG = 'a-cronjob-with-the-longest-name-that-kubernetes-allo'
const OTHER = `${LONG.slice(0, 42)}-else`

it.each([
  ['backup-manual-x7k', ['backup'], 'backup'],
  ['backup-2611230200', ['backup'], 'backup'],
  ['backup-manual-spawn-mb3k-x7k2p', ['backup'], 'backup'],
  ['backup-by-hand', ['backup'], 'backup'],
  ['backup', ['backup'], null],
  ['backups-manual-x7k', ['backup'], null],
  ['other-backup-manual-x7k', ['backup'], null],
  // The longest name counts, whichever is known first.
  ['backup-db-manual-x7k', ['backup', 'backup-db'], 'backup-db'],
  ['backup-db-manual-x7k', ['backup-db', 'backup'], 'backup-db'],
  ['backup-db-1', ['backup', 'backup-db'], 'backup-db'],
  ['backup-dbx-1', ['backup', 'backup-db'], 'backup'],
  // What comes before the mark is the whole name: the CronJob backup-db is gone.
  ['backup-db-manual-x7k', ['backup'], null],
  ['run-manual-job-manual-x7k', ['run', 'run-manual-job'], 'run-manual-job'],
  ['run-manual-job-5', ['run', 'run-manual-job'], 'run-manual-job'],
  // Kubernetes Dashboard leaves 41 characters of a name, k9s 42.
  [`${LONG.slice(0, 41)}-manual-x7k`, [LONG], LONG],
  [`${LONG.slice(0, 42)}-manual-x7k`, [LONG], LONG],
  [`${LONG.slice(0, 40)}-manual-x7k`, [LONG], null],
  [`${LONG.slice(0, 41)}-manual-x7k`, [LONG, OTHER], null],
  [`${LONG}-manual-1764122400`.slice(0, 63), [LONG], LONG],
])('%s, with %j, belongs to %s', (job, names, expected) => {
  expect([52, 63]).toEqual([LONG.length, Math.max(63, job.length)])
  expect(ownerOf(job, ...names)).toBe(expected)
})

it('is not of a CronJob that was created after it, nor of one of another namespace', () => {
  const t = open()
  t.add(sourceOf('early', 30))
  t.add(sourceOf('late', 31))
  t.add(sourceOf('far', 0, 'bank'))
  const owners = ['early-manual-1', 'late-manual-1', 'far-manual-1'].map(
    (name) => t.own({ before: undefined, after: jobOf(name) }).after!.sourceUid,
  )
  expect(owners).toEqual(['shop/early@30', null, null])
})

it('is found when its CronJob is seen after it, and moved when a longer name, or a second one, is seen', () => {
  const t = open()
  const { after } = t.own({ before: undefined, after: jobOf('backup-db-1') })
  const [claimed, ...none] = t.add(sourceOf('backup'))
  expect(none).toEqual([])
  expect(claimed).toEqual({ before: after, after: { ...after, sourceUid: 'shop/backup@0' }, isListed: true })
  const [moved] = t.add(sourceOf('backup-db'))
  expect([moved!.before!.sourceUid, moved!.after!.sourceUid]).toEqual(['shop/backup@0', 'shop/backup-db@0'])
  expect(t.add(sourceOf('unconcerned'))).toEqual([])
  const shortened = t.own({ before: undefined, after: jobOf(`${LONG.slice(0, 41)}-manual-1`) }).after!
  expect(shortened.sourceUid).toBeNull()
  expect(t.add(sourceOf(LONG)).map((one) => nameOf(one.after!.sourceUid))).toEqual([LONG])
  expect(t.add(sourceOf(OTHER)).map((one) => nameOf(one.after!.sourceUid))).toEqual([null])
})

it('stays with its CronJob while it changes, also when that is deleted and created again', () => {
  const t = open('backup')
  const first = jobOf('backup-manual-1')
  expect(t.own({ before: undefined, after: first }).after!.sourceUid).toBe('shop/backup@0')
  t.remove('backup')
  expect(t.add(sourceOf('backup', 40))).toEqual([])
  const second = { ...first, outcome: 'Running' } as const
  const changed = t.own({ before: first, after: second })
  expect([changed.before!.sourceUid, changed.after!.sourceUid]).toEqual(['shop/backup@0', 'shop/backup@0'])
  const gone = t.own({ before: second, after: undefined })
  expect(gone).toEqual({ before: { ...second, sourceUid: 'shop/backup@0' }, after: undefined })
  expect(t.add(sourceOf('backup', 41))).toEqual([])
})

it('is no more of a CronJob by its name once it has an owner, nor is another Job of its name', () => {
  const t = open('backup')
  const first = jobOf('backup-manual-1')
  t.own({ before: undefined, after: first })
  const ownerReferences = [{ kind: 'CronJob', name: 'other', uid: 'o1' }]
  const owned = jobOf('backup-manual-1', 30, { ownerReferences })
  const changed = t.own({ before: first, after: owned })
  expect([changed.before!.sourceUid, changed.after!.sourceUid]).toEqual(['shop/backup@0', 'o1'])
  const next = jobOf('backup-manual-1', 30, { uid: 'another' })
  t.remove('backup')
  expect(t.own({ before: owned, after: next }).after!.sourceUid).toBeNull()
})

it('leaves other Jobs as they are', () => {
  const t = open('backup')
  const other = jobOf('backup-1', 30, { annotations: {} })
  expect(t.own({ before: undefined, after: other, isListed: true })).toEqual({
    before: undefined,
    after: other,
    isListed: true,
  })
})
