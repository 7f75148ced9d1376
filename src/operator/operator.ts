/**
 * The composition of the operator: reflectors that always run, so that a standby is warm, and, while this process
 * leads, controllers. When the lease is lost, they stop and the election starts again.
 */

import { CRONJOBS_OFF, type CronJobSettings } from '../domain/cron-job-settings.ts'
import type { KubernetesClient } from '../kubernetes/client.ts'
import { createElector, type Elector } from '../kubernetes/elector.ts'
import type { KubernetesMetrics } from '../kubernetes/metrics.ts'
import type { Priority } from '../kubernetes/queue.ts'
import { createRecorder } from '../kubernetes/recorder.ts'
import { whenAborted } from '../runtime/abort.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { channelKind } from './channels/channel-kind.ts'
import { createClusterRegistration } from './cluster/register-cluster.ts'
import {
  CHANNEL_KIND,
  FIELD_MANAGER,
  HEARTBEAT_CHANNELS,
  HEARTBEAT_CHECKS,
  HEARTBEAT_SILENCES,
  INSTALLATION_ANNOTATION,
  LEASE_NAME,
  SILENCE_KIND,
} from './heartbeat-check.ts'
import type { OperatorMetrics } from './metrics.ts'
import {
  type NamespaceChange,
  type NamespaceWatch,
  startNamespaceReads,
  startNamespaceWatch,
} from './namespaces/watch-namespaces.ts'
import { createOptInController, type OptInController } from './opt-in/control-opt-in.ts'
import { createLeaseReporter, findClaims, type OwnClaims } from './ownership/installation.ts'
import {
  type CheckController,
  type CheckSettings,
  createCheckController,
  isAnnotationRead,
} from './reconcile/control-checks.ts'
import { createDeclaredController, type DeclaredController } from './resource/control.ts'
import { createResourceWatch } from './resource/watch.ts'
import { createRunControllers } from './runs/control-runs.ts'
import type { HeartbeatChannel } from './schema/channel.ts'
import type { HeartbeatSilence } from './schema/silence.ts'
import type { Service } from './service.ts'
import { silenceKind } from './silences/silence-kind.ts'
import { sourceKindOf } from './sources/source-kinds.ts'
import { createSourceWatch } from './sources/watch-sources.ts'
import { type Controller, openTerm, type Shared, type Term } from './term.ts'
import { createCheckWatch } from './watch-checks.ts'

export interface OperatorOptions extends CheckSettings {
  readonly client: KubernetesClient
  readonly service: Service
  readonly cluster: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  /** What is watched of the CronJobs. Default: nothing. */
  readonly cronJobs?: CronJobSettings
  /** The namespace of the Lease. */
  readonly leaseNamespace: string
  /** Unique to this process. */
  readonly identity: string
  readonly clock: Clock
  readonly random?: () => number
  readonly log: Log
  readonly kubernetesMetrics: KubernetesMetrics
  readonly metrics: OperatorMetrics
  /** TAKE_OVER: the id of an installation whose resources become ours. */
  readonly takeOver?: string | null
  /** Whether nothing is reconciled beside the Lease of another installation. */
  readonly yieldsToOthers?: boolean
  /** A watch that receives nothing for so long is replaced. */
  readonly stallMs?: number
  /** Another cluster with our name counts as alive for this long after its last registration. */
  readonly holderSeconds?: number
  /** How often a deadline is looked for that waits for the Jobs. Default: every two seconds. */
  readonly seenEveryMs?: number
}

export interface Operator {
  /** Begins at once, and resolves when whyNotReconciling() is known, or cannot be known soon. */
  start(): Promise<void>
  /** Finishes the reconciles in progress and releases the lease. */
  stop(): Promise<void>
  /** Whether the HeartbeatChecks are in the cache, but for namespaces that may not be read. */
  hasSynced(): boolean
  isLeader(): boolean
  /** Why nothing is reconciled, and what to do; null: it is, or that is not known. */
  whyNotReconciling(): string | null
}

const HOLDER_SECONDS = 30
/** How often the name of the cluster is registered in the time that a registration is valid. */
const REGISTRATIONS = 3
/** The reconciles in progress at a stop may take so long; the lease is kept until then. */
const DRAIN_MS = 4_000
/** A lost lease expires five seconds after the end of its renewals, and a statement in progress may take four. */
const LOST_DRAIN_MS = 500
const REGISTRATION_RETRY = { firstMs: 250, maxMs: 4_000 }

export function createOperator(options: OperatorOptions): Operator {
  const {
    client,
    service,
    cluster,
    namespaces,
    clock,
    log,
    metrics,
    kubernetesMetrics,
    identity,
    stallMs,
    seenEveryMs,
  } = options
  const { random = Math.random, holderSeconds = HOLDER_SECONDS } = options
  const { takeOver = null, yieldsToOthers = false, cronJobs = CRONJOBS_OFF } = options
  const registrationMs = (holderSeconds * 1_000) / REGISTRATIONS
  let checks: CheckController | undefined
  let channels: DeclaredController | undefined
  let silences: DeclaredController | undefined
  let optIn: OptInController | undefined

  const onChange = (key: string, priority: Priority) => {
    checks?.add(key, priority)
    optIn?.checkChanged(key, priority)
  }
  let installation: string | null = null
  const watching = { client, namespaces, clock, random, stallMs, log }
  const watch = createCheckWatch({
    ...watching,
    metrics: kubernetesMetrics.reflector(HEARTBEAT_CHECKS.plural),
    installation: () => installation,
    onChange,
  })
  const channelWatch = createResourceWatch<HeartbeatChannel>(
    { kind: CHANNEL_KIND, type: HEARTBEAT_CHANNELS },
    {
      ...watching,
      metrics: kubernetesMetrics.reflector(HEARTBEAT_CHANNELS.plural),
      onChange: (key, priority) => channels?.add(key, priority),
    },
  )
  const silenceWatch = createResourceWatch<HeartbeatSilence>(
    { kind: SILENCE_KIND, type: HEARTBEAT_SILENCES },
    {
      ...watching,
      metrics: kubernetesMetrics.reflector(HEARTBEAT_SILENCES.plural),
      onChange: (key, priority) => silences?.add(key, priority),
    },
  )
  const sourceMetrics = kubernetesMetrics.reflector
  const sources =
    cronJobs.watch === 'none'
      ? null
      : createSourceWatch({
          ...watching,
          kind: sourceKindOf('CronJob'),
          cluster,
          metrics: sourceMetrics,
          areLogsRead: cronJobs.logs === 'failed',
        })
  const recorder = createRecorder({
    client,
    clock,
    controller: FIELD_MANAGER,
    instance: identity,
    onProblem: (error) => log.warn({ error }, 'an Event could not be written'),
    onDropped: kubernetesMetrics.dropped,
  })

  const onTaken = (isTaken: boolean) => metrics.clusterNameTaken.set(isTaken ? 1 : 0)
  const registration = createClusterRegistration({ client, service, cluster, holderSeconds, log, onTaken })
  kubernetesMetrics.leading(LEASE_NAME, false)
  const stopping = new AbortController()
  const base = { service, cluster, namespaces, cronJobs, clock, random, log, stallMs }
  const shared: Shared = { ...base, recorder, metrics, kubernetesMetrics }
  let elector: Elector | undefined
  let election: Promise<void> | undefined
  let whyNotReconciling: string | null = null

  async function beginElection(onKnown: () => void): Promise<void> {
    const onLook = (whyNot: string | null) => {
      whyNotReconciling = whyNot
      onKnown()
    }
    const claims = await findClaims({ ...options, takeOver, yieldsToOthers, onLook }, stopping.signal)
    if (claims === null) return
    installation = claims.installation
    elector = electorOf(claims)
    elector.start()
  }

  async function endElection(): Promise<void> {
    stopping.abort()
    await election
    await elector?.stop()
  }

  const electorOf = (claims: OwnClaims) =>
    createElector({
      client,
      namespace: options.leaseNamespace,
      name: LEASE_NAME,
      fieldManager: FIELD_MANAGER,
      identity,
      clock,
      random,
      annotations: { [INSTALLATION_ANNOTATION]: claims.installation },
      onHeld: createLeaseReporter(claims, log),
      onLeading: (lease) => lead(lease, claims),
      onChange(isLeader) {
        kubernetesMetrics.leading(LEASE_NAME, isLeader)
        log.info({ identity }, isLeader ? 'leading' : 'not leading')
      },
      onProblem: (error) => log.warn({ error }, 'the election has trouble with the API server; it goes on trying'),
    })

  /** Until the lease is lost, or this process stops. */
  async function lead(lease: AbortSignal, claims: OwnClaims): Promise<void> {
    let failures = 0
    while (!lease.aborted) {
      const registered = await registration.renew(lease)
      if (registered === 'held') await workUntilDisplaced(lease, claims)
      failures = registered === 'unknown' ? failures + 1 : 0
      if (registered === 'taken') await clock.sleep(registrationMs, lease)
      if (registered === 'unknown') await clock.sleep(backoffMs(failures - 1, REGISTRATION_RETRY, random), lease)
    }
    metrics.clusterNameTaken.set(0)
  }

  async function workUntilDisplaced(lease: AbortSignal, claims: OwnClaims): Promise<void> {
    const displaced = new AbortController()
    const signal = AbortSignal.any([lease, displaced.signal])
    const { term, close } = openTerm(shared, { client, signal, claims, clusterUid: registration.uid })
    const registering = term.startLoop('claim', registrationMs, async () => {
      // A failed registration does not stop the work: only another cluster with the name does.
      if ((await registration.renew(signal)) === 'taken') displaced.abort()
    })
    const asking = sources === null ? [] : [term.startLoop('rights', sources.rights.everyMs, sources.rights.ask)]
    const namespaceWatch = startNamespaces(term)
    // What a controller of single namespaces knows of them may be a minute old.
    const watched = namespaces === null ? namespaceWatch : null
    const settings = { ...options, watch, sources, namespaceWatch: watched, onFollowed }
    const reconciling = createCheckController(term, settings)
    const { noteRun } = reconciling
    const runs = sources === null ? null : createRunControllers(term, { sources, checks: watch, noteRun, seenEveryMs })
    function onFollowed(key: string): void {
      runs?.follow(key)
    }
    const optingIn =
      sources === null
        ? undefined
        : createOptInController(term, {
            sources,
            checks: watch,
            namespaceWatch,
            findProjectsInstead: reconciling.findProjectsInstead,
          })
    const { isWatched } = watch
    const declaring = { ...options, namespaces: reconciling.namespaces, isWatched }
    const isRevivable = (options.revival ?? 'name') === 'name'
    const sending = createDeclaredController(term, channelKind(term, isRevivable), {
      ...declaring,
      watch: channelWatch,
    })
    const silencing = createDeclaredController(term, silenceKind(term), { ...declaring, watch: silenceWatch })
    checks = reconciling
    channels = sending
    silences = silencing
    optIn = optingIn
    const ofCronJobs = [...(runs?.controllers ?? []), ...(optingIn === undefined ? [] : [optingIn])]
    const controllers: readonly Controller[] = [reconciling, sending, silencing, ...ofCronJobs]
    for (const controller of controllers) controller.start()
    await whenAborted(signal)
    checks = undefined
    channels = undefined
    silences = undefined
    optIn = undefined
    await close(
      [registering, ...asking, ...controllers, ...(namespaceWatch === null ? [] : [namespaceWatch])],
      elector?.isLeader() ? DRAIN_MS : LOST_DRAIN_MS,
    )
  }

  /** Null: no annotation or label of a Namespace decides anything that is to be noticed at once. */
  function startNamespaces(term: Term): NamespaceWatch | null {
    const areLabelsRead = cronJobs.watch === 'labelled'
    const onChange = (name: string, { isOfProjects, isOfLabel }: NamespaceChange) => {
      if (isOfProjects) for (const one of [checks, channels, silences]) one?.projectsChanged(name)
      if (isOfLabel || isOfProjects) optIn?.namespaceChanged(name)
    }
    if (namespaces === null)
      return areLabelsRead || isAnnotationRead(options) ? startNamespaceWatch({ ...term, onChange }) : null
    return areLabelsRead ? startNamespaceReads({ ...term, namespaces, onChange }) : null
  }

  const started = new AsyncDisposableStack()
  return {
    start() {
      for (const part of [recorder, watch, channelWatch, silenceWatch, ...(sources === null ? [] : [sources])]) {
        started.defer(part.stop)
        part.start()
      }
      started.defer(endElection)
      return new Promise((resolve) => {
        election = beginElection(resolve)
      })
    },
    stop: () => started.disposeAsync(),
    hasSynced: watch.hasTried,
    isLeader: () => elector?.isLeader() ?? false,
    whyNotReconciling: () => whyNotReconciling,
  }
}
