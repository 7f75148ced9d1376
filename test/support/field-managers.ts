/** Under which names the operator writes, on the fake API server and on a real one. */

import { expect, it } from 'vitest'
import type { KubernetesObject } from '../../src/kubernetes/objects.ts'
import type { Scene } from './operator.ts'
import { eventually } from './until.ts'

const FINALIZER = 'heartbeat-operator.io/cleanup'

interface Fields {
  readonly [name: string]: Fields
}

/** The owners of each field, by its path; `status` of a status is one of them with all that is in it. */
function ownersOf({ metadata: { managedFields = [] } }: KubernetesObject): Record<string, string[]> {
  const owners: Record<string, string[]> = {}
  for (const { manager, operation, apiVersion, fieldsV1 } of managedFields) {
    const add = (path: string) => {
      owners[path] = [...(owners[path] ?? []), `${manager} ${operation} ${apiVersion}`]
    }
    const walk = (fields: Fields, path: string) => {
      const names = Object.keys(fields).filter((name) => name !== '.')
      if (names.length === 0) add(path)
      for (const name of names) walk(fields[name]!, `${path}.${name}`)
    }
    walk((fieldsV1 ?? {}) as Fields, '')
  }
  return owners
}

/** Distinct owners of the fields whose path begins so. */
function ownersIn(object: KubernetesObject, path: string): string[] {
  const found = Object.entries(ownersOf(object)).filter(([field]) => field.startsWith(path))
  return [...new Set(found.flatMap(([, owners]) => owners))].sort()
}

const STATUS_OWNER = ['heartbeat-operator-status Update heartbeat-operator.io/v1']
const FINALIZER_OWNER = ['heartbeat-operator Update heartbeat-operator.io/v1']
const LEASE_OWNER = ['heartbeat-operator Update coordination.k8s.io/v1']
const FINALIZERS = '.f:metadata.f:finalizers'

/** @param leaseNamespace that of the scene's operator */
export function testFieldManagers(t: Scene, leaseNamespace: string): void {
  const leasePath = `/apis/coordination.k8s.io/v1/namespaces/${leaseNamespace}/leases/heartbeat-operator`
  const readLease = async () => (await t.cluster.api('GET', leasePath)).body as KubernetesObject
  it('the operator owns what it writes under its name, and its status under another', async () => {
    await t.place.makeReady('fresh')
    // Behind resources that wait for their first reconcile, the finalizer comes after Ready.
    const object = await eventually('it has its finalizer', async () => {
      const found = await t.place.get('fresh')
      return found.metadata.finalizers?.includes(FINALIZER) === true && found
    })
    expect(ownersIn(object, '.f:status')).toEqual(STATUS_OWNER)
    expect(ownersIn(object, FINALIZERS)).toEqual(FINALIZER_OWNER)
    expect(ownersIn((await t.place.find('secrets', 'fresh-heartbeat'))!, '')).toEqual(['heartbeat-operator Update v1'])
    expect(ownersIn((await t.place.event('fresh', 'Created')) as unknown as KubernetesObject, '')).toEqual([
      'heartbeat-operator Update events.k8s.io/v1',
    ])
    expect(ownersIn(await readLease(), '')).toEqual(LEASE_OWNER)
  })
}
