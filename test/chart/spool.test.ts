/** Where the pods of the api store pings while the database is unavailable (design, section 10). */

import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { CASES } from './cases.ts'
import { helm, listPods, pick, readRefusal, renderChart, type Values } from './chart.ts'

const MOUNT = { name: 'spool', mountPath: '/var/spool/heartbeat-operator' }
const FOLDER = '/var/spool/heartbeat-operator/pings'
/** For what is not counted: the lock and whole blocks. */
const ROOM = 16_777_216
const OWN = CASES['own volumes'] as { api: { spool: { persistentVolume: object } } }

const podOf = async (values: Values, component = 'api') =>
  listPods(await renderChart(values)).find(({ labels }) => labels['app.kubernetes.io/component'] === component)!

async function readSpool(values: Values) {
  const { owner, spec } = await podOf(values)
  const { env = [], volumeMounts = [] } = spec.containers[0]
  const readVariable = (wanted: string) => env.find(({ name }) => name === wanted)?.value
  return {
    kind: owner.kind,
    folder: readVariable('SPOOL_DIR'),
    maxBytes: readVariable('SPOOL_MAX_BYTES'),
    mounts: volumeMounts,
    volumes: spec.volumes,
  }
}

describe('the spool of the api', () => {
  it.each([
    [{}, 67_108_864],
    [{ api: { spool: { maxBytes: 2_147_483_648 } } }, 2_147_483_648],
  ])('is an emptyDir with room for more than it may hold: %j', async (values, bytes) => {
    expect(await readSpool(values)).toEqual({
      kind: 'Deployment',
      folder: FOLDER,
      maxBytes: String(bytes),
      mounts: [MOUNT],
      volumes: [{ name: 'spool', emptyDir: { sizeLimit: String(bytes + ROOM) } }],
    })
  })

  it('is no volume where it is disabled, also beside a persistent one', async () => {
    for (const persistentVolume of [{}, { enabled: true }])
      expect(await readSpool({ api: { spool: { maxBytes: 0, persistentVolume } } })).toEqual({
        kind: 'Deployment',
        folder: undefined,
        maxBytes: '0',
        mounts: [],
        volumes: undefined,
      })
  })

  it('fits into the ephemeral storage that a pod has', async () => {
    const { spec } = await podOf({})
    expect(spec.containers[0].resources).toMatchObject({
      requests: { 'ephemeral-storage': '192Mi' },
      limits: { 'ephemeral-storage': '1Gi' },
    })
  })

  it('is not in the controller, and may not be set as a further variable', async () => {
    const { spec } = await podOf({}, 'controller')
    expect(JSON.stringify(spec)).not.toMatch(/spool/i)
    for (const name of ['SPOOL_DIR', 'SPOOL_MAX_BYTES'])
      expect(await readRefusal({ api: { spool: { maxBytes: 0 } }, extraEnv: [{ name, value: '1' }] })).toContain(
        `${name} is set by the chart`,
      )
  })

  it.each([1, 8_388_607, -1, '64Mi'])('is refused with %j bytes', async (maxBytes) => {
    expect(await readRefusal({ api: { spool: { maxBytes } } })).toContain('maxBytes')
  })
})

describe('with persistent volumes', () => {
  it('each replica is a pod of a StatefulSet with a volume of its own, which stays', async () => {
    const { spec, metadata } = pick(await renderChart(OWN), 'StatefulSet', 'heartbeat-api')
    expect(metadata.labels['app.kubernetes.io/component']).toBe('api')
    expect(spec).toMatchObject({
      serviceName: 'heartbeat-api',
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'RollingUpdate' },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    })
    expect(spec).not.toHaveProperty('strategy')
    expect(spec.volumeClaimTemplates).toMatchObject([
      {
        metadata: { name: 'spool', annotations: { 'example.com/backup': 'no' } },
        spec: {
          accessModes: ['ReadWriteOncePod'],
          storageClassName: 'fast',
          resources: { requests: { storage: '2Gi' } },
        },
      },
    ])
    expect(await readSpool(OWN)).toMatchObject({
      folder: FOLDER,
      maxBytes: '67108864',
      mounts: [MOUNT, { name: 'ca', mountPath: '/ca' }],
      volumes: [{ name: 'ca', configMap: { name: 'ca' } }],
    })
  })

  it('there is no Deployment of the api, and the autoscaler, budget, Services and notes mean the StatefulSet', async () => {
    const objects = await renderChart(OWN)
    const named = objects.filter(({ metadata }) => metadata.name === 'heartbeat-api').map(({ kind }) => kind)
    expect(named.sort()).toEqual([
      'HorizontalPodAutoscaler',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
      'ServiceAccount',
      'StatefulSet',
    ])
    const { scaleTargetRef } = pick(objects, 'HorizontalPodAutoscaler').spec
    expect(scaleTargetRef).toEqual({ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'heartbeat-api' })
    const labels = pick(objects, 'StatefulSet', 'heartbeat-api').spec.template.metadata.labels
    for (const kind of ['PodDisruptionBudget', 'Service'])
      expect(labels).toMatchObject(
        pick(objects, kind, 'heartbeat-api').spec.selector.matchLabels ??
          pick(objects, kind, 'heartbeat-api').spec.selector,
      )
    const dryRun = ['install', 'heartbeat', '-n', 'monitoring', '--dry-run=client', '-f', '-']
    const chart = new URL('../../charts/heartbeat-operator', import.meta.url).pathname
    const { stdout } = await helm([...dryRun.slice(0, 2), chart, ...dryRun.slice(2)], { generateSecrets: true, ...OWN })
    expect(stdout).toContain('exec -i statefulset/heartbeat-api -- node')
  })

  it('the pods are those of the Deployment, but for the volume, its group, and the label of their version', async () => {
    const { persistentVolume: _, ...spool } = OWN.api.spool
    const [one, other] = await Promise.all([podOf({ ...OWN, api: { ...OWN.api, spool } }), podOf(OWN)])
    const essence = ({ spec }: typeof one) => {
      const { volumes: _, securityContext: __, topologySpreadConstraints: ___, ...rest } = spec
      return rest
    }
    expect(essence(other)).toEqual(essence(one))
    expect(other.spec.securityContext).toEqual({
      ...(one.spec.securityContext as object),
      fsGroup: 65532,
      fsGroupChangePolicy: 'OnRootMismatch',
    })
    expect(other.spec.topologySpreadConstraints).toMatchObject([{ matchLabelKeys: ['controller-revision-hash'] }])
  })

  it('the group of the volume is the one of the values, or none where the cluster gives one', async () => {
    const groupOf = async (podSecurityContext: object) =>
      (await podOf({ ...OWN, podSecurityContext })).spec.securityContext as { fsGroup?: number }
    expect((await groupOf({ runAsGroup: 1000 })).fsGroup).toBe(1000)
    expect((await groupOf({ fsGroup: 2000 })).fsGroup).toBe(2000)
    const openshift = parse('{runAsUser: null, runAsGroup: null}')
    expect(await groupOf(openshift)).not.toHaveProperty('fsGroup')
    const controller = await podOf(OWN, 'controller')
    expect(controller.spec.securityContext).not.toHaveProperty('fsGroup')
  })
})
