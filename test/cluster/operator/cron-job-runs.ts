/** CronJobs and Jobs on a real API server, and what a scheduler and a kubelet write into the status of their pods. */

import { toTime } from '../../../src/kubernetes/objects.ts'
import { cluster } from '../../support/cluster.ts'
import { type Cause, fill, NODE } from '../../support/job-causes.ts'
import { eventually } from '../../support/until.ts'
import { callerOf } from '../../support/workplace.ts'

export const api = callerOf(cluster)

/** The path of a kind of batch/v1. */
export const batch = (plural: string, where: string) => `/apis/batch/v1/namespaces/${where}/${plural}`
/** The path of a kind of v1. */
export const core = (plural: string, where: string) => `/api/v1/namespaces/${where}/${plural}`

export const jobSpec = (spec: object = {}, podSpec: object = {}) => ({
  backoffLimit: 0,
  ...spec,
  template: {
    spec: { restartPolicy: 'Never', containers: [{ name: 'backup', image: 'example.com/backup:1' }], ...podSpec },
  },
})

/** A CronJob that starts nothing by itself, unless `spec` says so. */
export async function makeCronJob(where: string, name: string, spec: object = {}) {
  const never = { schedule: '0 0 1 1 *', timeZone: 'Etc/UTC', jobTemplate: { spec: jobSpec() } }
  return api('POST', batch('cronjobs', where), { metadata: { name }, spec: { ...never, suspend: true, ...spec } })
}

/** As its controller does, or kubectl create job --from. */
export async function makeJob(
  cronJob: { metadata: { name: string; uid: string; namespace: string } },
  spec: object = jobSpec(),
) {
  const { name, uid, namespace } = cronJob.metadata
  const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name, uid, controller: true }
  return api('POST', batch('jobs', namespace), { metadata: { name: `${name}-1`, ownerReferences: [owner] }, spec })
}

/** Waits for a pod of the Job that is none of these. */
export async function findPod(where: string, job: string, except: readonly string[] = []): Promise<string> {
  const path = `${core('pods', where)}?labelSelector=batch.kubernetes.io/job-name=${job}`
  return eventually(`a pod of ${job}`, async () => {
    const pods: { metadata: { name: string } }[] = (await api('GET', path)).items
    return pods.find(({ metadata }) => !except.includes(metadata.name))?.metadata.name
  })
}

/** What the scheduler does, if there is a node, and then the kubelet. */
export async function writePod(
  where: string,
  pod: string,
  { node, status }: Pick<Cause, 'node' | 'status'>,
): Promise<void> {
  const path = `${core('pods', where)}/${pod}`
  if (node !== undefined)
    await api('POST', `${path}/binding`, { metadata: { name: pod }, target: { kind: 'Node', name: NODE } })
  if (status !== undefined) await api('PATCH', `${path}/status`, { status })
}

/** What the kubelet does with a pod that its Job has deleted: its containers end, and it is gone. */
export async function endPod(where: string, pod: string, killedStatus: object): Promise<void> {
  const path = `${core('pods', where)}/${pod}`
  const { deletionTimestamp, deletionGracePeriodSeconds } = await eventually('its Job deletes the pod', async () => {
    const { metadata } = await api('GET', path)
    return metadata.deletionTimestamp === undefined ? null : metadata
  })
  const KILLED = toTime(Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000)
  await api('PATCH', `${path}/status`, { status: fill(killedStatus, { KILLED }) })
  await api('DELETE', `${path}?gracePeriodSeconds=0`)
}
