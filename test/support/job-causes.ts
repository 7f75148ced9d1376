/**
 * Why Jobs fail and why they do not start: for each cause what the kubelet or the scheduler writes into the status of the pod, how the
 * controller of Jobs ends the Job, and what the operator says. The unit test reads it as objects that it makes; the test on a real API
 * server has the controllers make them, and compares. docs/use/cronjobs.md prints it.
 */

/** In texts `JOB`, `POD`, `CRONJOB` and `NAMESPACE` stand for the names. */
export interface Cause {
  /** What happened, for the table of the document. */
  readonly title: string
  /** Fields of the Job's spec. */
  readonly job?: object
  /** Fields of the pod's spec. */
  readonly podSpec?: object
  /** Labels and annotations of the pod, where the controller of Jobs writes them. */
  readonly podAnnotations?: Record<string, string>
  readonly node?: string
  /** The pod's status. Absent: there is no pod, or it says nothing. */
  readonly status?: object
  /** What the kubelet writes after the Job has deleted the pod, at the time `KILLED`. Absent: nothing. */
  readonly killedStatus?: object
  /** How the Job ends. Absent: it does not; its run is missed. */
  readonly condition?: { readonly reason: string; readonly message: string }
  readonly says: string
  /** Of the last run. */
  readonly reason?: string
  readonly exitCode?: number
  /** Lines of the body after the first. Absent: not compared. */
  readonly body?: readonly string[]
}

export const NODE = 'worker-3'

const BACKOFF = { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
const DEADLINE = { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
const STARTED = '2026-11-23T02:00:01Z'
const FINISHED = '2026-11-23T02:04:11Z'

const statusOf = (name: string, state: object, lastState: object = {}, restartCount = 0) => ({
  name,
  image: 'example.com/backup:1',
  imageID: '',
  ready: false,
  restartCount,
  started: false,
  state,
  lastState,
})

export const terminated = (exitCode: number, reason = 'Error', more: object = {}) => ({
  terminated: {
    exitCode,
    reason,
    startedAt: STARTED,
    finishedAt: FINISHED,
    containerID: 'containerd://0123456789abcdef',
    ...more,
  },
})

export const failed = (...containers: object[]) => ({ phase: 'Failed', containerStatuses: containers })
const waiting = (reason: string, message?: string) =>
  statusOf('backup', { waiting: { reason, ...(message === undefined ? {} : { message }) } })
const pending = (...containers: object[]) => ({ phase: 'Pending', containerStatuses: containers })

const endsWith = (exitCode: number, reason?: string, more?: object) =>
  failed(statusOf('backup', terminated(exitCode, reason, more)))

const disruptedBy = (reason: string, message: string) => ({
  type: 'DisruptionTarget',
  status: 'True',
  reason,
  message,
  lastTransitionTime: FINISHED,
})

/** Of a container that is restarted in its pod. */
const ON_FAILURE = { job: { backoffLimit: 3 }, podSpec: { restartPolicy: 'OnFailure' }, node: NODE }
const exit3 = terminated(3, 'Error', { message: 'cannot reach db:5432\n' })
const runsAgain = { phase: 'Running', containerStatuses: [statusOf('backup', { running: {} }, exit3, 3)] }
/** It ends after the Job has deleted its pod. */
const endsAgain = (phase: string, exitCode: number, reason: string) => ({
  phase,
  containerStatuses: [statusOf('backup', terminated(exitCode, reason, { finishedAt: 'KILLED' }), exit3, 3)],
})

const backOff = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container' } }
const START_ERROR = terminated(128, 'StartError', { message: 'exec: "backup": executable file not found in $PATH' })
const PROBED = {
  containers: [{ name: 'backup', image: 'example.com/backup:1', readinessProbe: { httpGet: { path: '/', port: 80 } } }],
}
const INIT_SPEC = { initContainers: [{ name: 'migrate', image: 'example.com/backup:1' }] }
const NO_NODE =
  '0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.'
const PULL =
  'Back-off pulling image "example.com/backup:1": ErrImagePull: failed to resolve reference "example.com/backup:1": not found'

const BACKED_OFF = `Job JOB failed: ${BACKOFF.reason}: ${BACKOFF.message}`
const CANNOT_REACH = ['--- termination message', 'cannot reach db:5432']
const EXIT_3 = { says: 'container backup failed (exit code 3)', reason: 'Error', exitCode: 3 }
const RESTARTED = {
  ...ON_FAILURE,
  ...EXIT_3,
  status: runsAgain,
  body: [BACKED_OFF, 'pod POD on node worker-3, attempt 4 of 4', ...CANNOT_REACH],
}

const FAILED: readonly Cause[] = [
  {
    title: 'killed for memory',
    status: endsWith(137, 'OOMKilled'),
    node: NODE,
    says: 'container backup was OOMKilled (exit code 137)',
    reason: 'OOMKilled',
    exitCode: 137,
    body: [BACKED_OFF, 'pod POD on node worker-3, attempt 1 of 1'],
  },
  {
    title: 'exit code',
    status: endsWith(3, 'Error', { message: 'cannot reach db:5432\n' }),
    ...EXIT_3,
    body: [BACKED_OFF, 'pod POD, attempt 1 of 1', ...CANNOT_REACH],
  },
  {
    title: 'signal',
    status: endsWith(139),
    says: 'container backup was killed by signal 11 (exit code 139)',
    reason: 'Error',
    exitCode: 139,
  },
  {
    title: 'init container',
    podSpec: INIT_SPEC,
    status: {
      phase: 'Failed',
      initContainerStatuses: [statusOf('migrate', terminated(7))],
      containerStatuses: [waiting('PodInitializing')],
    },
    says: 'init container migrate failed (exit code 7)',
    reason: 'Error',
    exitCode: 7,
  },
  {
    title: 'any code, beside a sidecar that ends after it',
    podSpec: { initContainers: [{ name: 'proxy', image: 'example.com/proxy:1', restartPolicy: 'Always' }] },
    status: { ...endsWith(5), initContainerStatuses: [statusOf('proxy', terminated(143))] },
    says: 'container backup failed (exit code 5)',
    reason: 'Error',
    exitCode: 5,
  },
  {
    title: '`restartPolicy: OnFailure`, killed while it ran again',
    ...RESTARTED,
    killedStatus: endsAgain('Failed', 137, 'Error'),
  },
  {
    title: '`restartPolicy: OnFailure`, ended with 0 when it was asked to end',
    ...RESTARTED,
    killedStatus: endsAgain('Succeeded', 0, 'Completed'),
  },
  {
    title: 'a command that does not exist',
    status: endsWith(128, 'StartError', {
      message: 'exec: "backup": executable file not found in $PATH',
      startedAt: '1970-01-01T00:00:00Z',
    }),
    says: 'container backup could not start: StartError: exec: "backup": executable file not found in $PATH',
    reason: 'StartError',
    exitCode: 128,
  },
  {
    title: 'evicted by its node',
    status: {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 84Mi.',
      conditions: [disruptedBy('TerminationByKubelet', 'The node was low on resource: memory.')],
    },
    node: NODE,
    says: 'pod POD was evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 84Mi.',
    reason: 'Evicted',
    body: [BACKED_OFF, 'pod POD on node worker-3, attempt 1 of 1'],
  },
  {
    title: 'evicted by a drain',
    status: { ...endsWith(143), conditions: [disruptedBy('EvictionByEvictionAPI', 'Eviction API: evicting')] },
    says: 'pod POD was evicted: Eviction API: evicting',
    reason: 'Error',
    exitCode: 143,
  },
  {
    title: 'preempted',
    status: {
      phase: 'Failed',
      conditions: [
        disruptedBy('PreemptionByScheduler', 'default-scheduler: preempting to accommodate a higher priority pod'),
      ],
    },
    says: 'pod POD was preempted: default-scheduler: preempting to accommodate a higher priority pod',
    reason: 'PreemptionByScheduler',
  },
  {
    title: 'node lost',
    status: { phase: 'Failed', conditions: [disruptedBy('DeletionByPodGC', 'PodGC: node no longer exists')] },
    node: NODE,
    says: 'pod POD was lost with node worker-3: PodGC: node no longer exists',
    reason: 'DeletionByPodGC',
  },
  {
    title: 'node shut down',
    status: {
      phase: 'Failed',
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
      conditions: [disruptedBy('TerminationByKubelet', 'Pod was terminated in response to imminent node shutdown.')],
    },
    says: 'pod POD was ended by its node: Pod was terminated in response to imminent node shutdown.',
    reason: 'Terminated',
  },
  {
    title: 'rejected by its node',
    status: { phase: 'Failed', reason: 'OutOfcpu', message: "Pod was rejected: Node didn't have enough resource: cpu" },
    says: "pod POD failed: OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu",
    reason: 'OutOfcpu',
  },
  {
    title: 'pod longer than its own `activeDeadlineSeconds`',
    status: {
      ...endsWith(137),
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    },
    says: 'pod POD failed: DeadlineExceeded: Pod was active on the node longer than the specified deadline',
    reason: 'DeadlineExceeded',
    exitCode: 137,
  },
  {
    title: 'longer than `activeDeadlineSeconds`',
    job: { activeDeadlineSeconds: 3 },
    status: { phase: 'Running', containerStatuses: [{ ...statusOf('backup', { running: {} }), ready: true }] },
    condition: DEADLINE,
    says: 'Job JOB ran longer than activeDeadlineSeconds',
    reason: 'DeadlineExceeded',
    body: [`Job JOB failed: ${DEADLINE.reason}: ${DEADLINE.message}`, 'pod POD, attempt 1 of 1'],
  },
  {
    title: 'no image until `activeDeadlineSeconds`',
    job: { activeDeadlineSeconds: 3 },
    status: pending(waiting('ImagePullBackOff', PULL)),
    condition: DEADLINE,
    says: `container backup could not start: ImagePullBackOff: ${PULL}`,
    reason: 'ImagePullBackOff',
  },
  {
    title: '`restartPolicy: OnFailure`, failing until `activeDeadlineSeconds`',
    job: { backoffLimit: 6, activeDeadlineSeconds: 3 },
    podSpec: { restartPolicy: 'OnFailure' },
    status: { phase: 'Running', containerStatuses: [statusOf('backup', backOff, terminated(8), 3)] },
    condition: DEADLINE,
    says: 'container backup failed (exit code 8), restarted 3 times: CrashLoopBackOff: back-off 40s restarting failed container',
    reason: 'Error',
    exitCode: 8,
  },
  {
    title: 'no pod says why',
    status: { phase: 'Failed' },
    says: BACKED_OFF,
    reason: 'BackoffLimitExceeded',
    body: ['pod POD, attempt 1 of 1'],
  },
  {
    title: '`podFailurePolicy`',
    job: {
      backoffLimit: 6,
      podFailurePolicy: {
        rules: [{ action: 'FailJob', onExitCodes: { containerName: 'backup', operator: 'In', values: [42] } }],
      },
    },
    status: endsWith(42),
    condition: {
      reason: 'PodFailurePolicy',
      message: 'Container backup for pod NAMESPACE/POD failed with exit code 42 matching FailJob rule at index 0',
    },
    says: 'container backup failed (exit code 42)',
    reason: 'Error',
    exitCode: 42,
    body: [
      'Job JOB failed: PodFailurePolicy: Container backup for pod NAMESPACE/POD failed with exit code 42 matching FailJob rule at index 0',
      'pod POD, attempt 1 of 7',
    ],
  },
  {
    title: 'an index of an indexed Job',
    job: { completionMode: 'Indexed', completions: 1, backoffLimit: 6, backoffLimitPerIndex: 0 },
    podAnnotations: { 'batch.kubernetes.io/job-completion-index': '0' },
    status: endsWith(3),
    condition: { reason: 'FailedIndexes', message: 'Job has failed indexes' },
    ...EXIT_3,
    body: ['Job JOB failed: FailedIndexes: Job has failed indexes', 'failed indexes: 0', 'pod POD (index 0)'],
  },
]

/** The Job ends: by its `backoffLimit`, unless a cause says otherwise. */
export const FAILURES: readonly Cause[] = FAILED.map((cause) => ({ condition: BACKOFF, ...cause }))

/** The Job has a pod that does not start: `says` is the detail of the missed run. */
export const WAITS: readonly Cause[] = [
  {
    title: 'image that cannot be pulled',
    status: pending(waiting('ImagePullBackOff', PULL)),
    says: `container backup could not start: ImagePullBackOff: ${PULL}`,
  },
  {
    title: 'missing Secret',
    status: pending(waiting('CreateContainerConfigError', 'secret "db" not found')),
    says: 'container backup could not start: CreateContainerConfigError: secret "db" not found',
  },
  {
    title: 'missing key of a Secret',
    status: pending(waiting('CreateContainerConfigError', "couldn't find key password in Secret NAMESPACE/db")),
    says: "container backup could not start: CreateContainerConfigError: couldn't find key password in Secret NAMESPACE/db",
  },
  {
    title: 'image of an init container',
    podSpec: INIT_SPEC,
    status: {
      phase: 'Pending',
      initContainerStatuses: [{ ...waiting('ErrImagePull', 'not found'), name: 'migrate' }],
      containerStatuses: [waiting('PodInitializing')],
    },
    says: 'init container migrate could not start: ErrImagePull: not found',
  },
  {
    title: 'init container that fails again and again',
    podSpec: { ...INIT_SPEC, restartPolicy: 'OnFailure' },
    status: {
      phase: 'Pending',
      initContainerStatuses: [{ ...statusOf('backup', backOff, terminated(7), 1), name: 'migrate' }],
      containerStatuses: [waiting('PodInitializing')],
    },
    says: 'init container migrate failed (exit code 7), restarted once: CrashLoopBackOff: back-off 40s restarting failed container',
  },
  {
    title: '`restartPolicy: OnFailure`, and a command that does not exist',
    podSpec: { restartPolicy: 'OnFailure' },
    status: { phase: 'Running', containerStatuses: [statusOf('backup', backOff, START_ERROR, 4)] },
    says: 'container backup could not start: StartError: exec: "backup": executable file not found in $PATH, restarted 4 times: CrashLoopBackOff: back-off 40s restarting failed container',
  },
  {
    title: 'no node fits',
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: NO_NODE }],
    },
    says: `pod POD could not be scheduled: ${NO_NODE}`,
  },
  {
    title: 'readiness probe that fails',
    podSpec: PROBED,
    status: { phase: 'Running', containerStatuses: [statusOf('backup', { running: {} })] },
    says: 'pod POD runs but is not ready: see its readiness probe',
  },
]

/** There is no pod, or no Job, or a pod that says nothing: the reason is an Event, or the state of the CronJob. */
export interface Absence {
  readonly title: string
  /** Of the CronJob, as the operator keeps it. */
  readonly source?: object
  readonly has: 'CronJob' | 'Job' | 'Pod'
  /** The newest Warning of the last of these objects. */
  readonly event?: { readonly reason: string; readonly message: string }
  readonly isSuspended?: boolean
  /** `SLOT`: the time of the slot. */
  readonly says: string
}

const QUOTA =
  'Error creating: pods "POD" is forbidden: exceeded quota: no-pods, requested: pods=1, used: pods=0, limited: pods=0'
const DENIED =
  "Error creating: pods \"POD\" is forbidden: ValidatingAdmissionPolicy 'POLICY' with binding 'POLICY' denied request: images must come from registry.example.com"
const MOUNT = 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found'
const MANY_MISSED = 'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew'

export const ABSENCES: readonly Absence[] = [
  { title: 'quota exceeded', has: 'Job', event: { reason: 'FailedCreate', message: QUOTA }, says: QUOTA },
  { title: 'admission denied', has: 'Job', event: { reason: 'FailedCreate', message: DENIED }, says: DENIED },
  {
    title: 'volume that cannot be mounted',
    has: 'Pod',
    event: { reason: 'FailedMount', message: MOUNT },
    says: `pod POD could not start: FailedMount: ${MOUNT}`,
  },
  {
    title: 'more than 100 missed times',
    has: 'CronJob',
    event: { reason: 'TooManyMissedTimes', message: MANY_MISSED },
    says: MANY_MISSED,
  },
  {
    title: 'Job suspended',
    has: 'Job',
    isSuspended: true,
    says: 'Job JOB is suspended: its queue starts it, or set spec.suspend to false',
  },
  { title: 'CronJob suspended', has: 'CronJob', source: { suspended: true }, says: 'CronJob CRONJOB is suspended' },
  {
    title: '`startingDeadlineSeconds` passed',
    has: 'CronJob',
    source: { startingDeadlineSeconds: 30 },
    says: 'CronJob CRONJOB created no Job for the slot at SLOT within startingDeadlineSeconds (30)',
  },
  {
    title: '`concurrencyPolicy: Forbid`, and a Job that has not ended',
    has: 'CronJob',
    source: { concurrencyPolicy: 'Forbid', active: ['JOB'] },
    says: 'Job JOB is still active, and concurrencyPolicy Forbid lets no other Job start beside it',
  },
  {
    title: 'Job deleted before it started',
    has: 'CronJob',
    source: { lastScheduleTime: 'SLOT' },
    says: 'the Job of CronJob CRONJOB for the slot at SLOT was deleted before it started',
  },
  {
    title: 'no controller of CronJobs',
    has: 'CronJob',
    says: 'CronJob CRONJOB created no Job for the slot at SLOT, and it has never created one: check that kube-controller-manager runs',
  },
]

/** Replaces what stands for names in the texts of a cause. */
export function fill<T>(value: T, names: Record<string, string>): T {
  const text = Object.entries(names).reduce(
    (text, [name, value]) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), value),
    JSON.stringify(value ?? null),
  )
  return JSON.parse(text)
}

/** The tables of docs/use/cronjobs.md. */
export function describeCauses(names: Record<string, string>): string {
  const rows = (causes: readonly (Cause | Absence)[]) =>
    causes.map(({ title, says }) => `| ${title} | \`${fill(says, names).replaceAll('|', '\\|')}\` |`)
  return [
    ...['| The Job has failed | First line |', '|---|---|', ...rows(FAILURES), ''],
    ...['| No run has started | Detail |', '|---|---|', ...rows(WAITS), ...rows(ABSENCES)],
  ].join('\n')
}
