/**
 * Reconciles one HeartbeatChannel: whose it is, whether it is deleted, its finalizer, its Secret, its channel in the
 * service, and its status. Each reconcile reads the Secret: no watch shows Secrets.
 */

import { isDeepStrictEqual } from 'node:util'
import type { ChannelChange, ChannelDeliveries } from '../../channels/declare-channel.ts'
import { CHANNEL_KINDS } from '../../domain/channel.ts'
import { AppError, describeError } from '../../domain/errors.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { isNamespaceGoing } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import { CHANNEL_KIND, HEARTBEAT_CHANNELS } from '../names.ts'
import type { Namespaces } from '../namespaces/namespaces.ts'
import type { OwnClaims } from '../ownership/installation.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import { describeForeign } from '../ownership/takeover.ts'
import { addForeign, conditionOf, cutMessage, isSameStatus } from '../resource/conditions.ts'
import { addFinalizer, createFinalization } from '../resource/finalizer.ts'
import { hasRequest } from '../resource/reconcile-request.ts'
import { regarding } from '../resource/resource.ts'
import { stalledRetryMs } from '../resource/stalled.ts'
import { createStatusWriter, describeRetry, patchStatus } from '../resource/write-status.ts'
import { type HeartbeatChannel, type HeartbeatChannelStatus, readChannel } from '../schema/channel.ts'
import type { Service } from '../service.ts'
import { type ChannelFindings, computeChannelStatus } from './channel-status.ts'
import { readSecret, StalledChannel } from './read-secret.ts'

export interface ChannelReconcileOptions {
  readonly client: KubernetesClient
  readonly cache: { get(key: string): HeartbeatChannel | undefined; put(object: HeartbeatChannel): void }
  readonly service: Service
  readonly cluster: string
  readonly claims: OwnClaims
  readonly namespaces: Namespaces
  readonly recorder: Pick<Recorder, 'record'>
  /** This process's clock. */
  readonly now: () => number
  readonly random: () => number
  readonly resyncMs: number
  /** Whether the id of a deleted channel may come back by the name of its resource alone. */
  readonly isRevivable: boolean
  readonly onFinalizerForced: () => void
}

const DONE = { kind: 'done' } as const

const CHANGES: Record<Exclude<ChannelChange, 'unchanged'>, { readonly reason: string; readonly note: string }> = {
  created: { reason: 'Created', note: 'the channel receives the events of the checks of this namespace from now on' },
  revived: { reason: 'Revived', note: 'the channel is back, with the id that it had' },
  updated: { reason: 'Updated', note: 'the service holds the new specification, and the present value of the Secret' },
}

export function createChannelReconcile(options: ChannelReconcileOptions) {
  const { client, cache, service, cluster, claims, namespaces, recorder, now, random, resyncMs } = options
  const { installation } = claims
  /** By key: the uids of resources of other installations, and their channels, that have their report. */
  const reported = new Map<string, string>()
  const resourceOf = (object: HeartbeatChannel) => {
    const { namespace, name } = object.metadata
    return { cluster, namespace: namespace!, name }
  }
  const record = (object: HeartbeatChannel, type: 'Normal' | 'Warning', event: { reason: string; note: string }) =>
    recorder.record(regarding(object, CHANNEL_KIND), { type, action: 'Reconcile', ...event })
  const replaceStatus = createStatusWriter<HeartbeatChannelStatus, HeartbeatChannel>({
    client,
    cache,
    type: HEARTBEAT_CHANNELS,
    installation,
  })
  const finalize = createFinalization<HeartbeatChannel>({
    client,
    type: HEARTBEAT_CHANNELS,
    now,
    cleanUp: (object) => service.retireChannel(resourceOf(object)),
    onForced(object) {
      options.onFinalizerForced()
      const note =
        'the channel could not be removed for 10 minutes; the resource is deleted now, and the channel is removed later'
      record(object, 'Warning', { reason: 'CleanupTimeout', note })
    },
  })

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = cache.get(key)
    if (object === undefined) return DONE
    const owner = ownershipOf(object, claims)
    if (owner.kind === 'foreign') return leave(key, object, owner.installation)
    reported.delete(key)
    if (object.metadata.deletionTimestamp !== undefined) {
      await finalize(object)
      return DONE
    }
    try {
      const { held, findings, result } = await sync(object, signal)
      signal.throwIfAborted()
      await report(held, findings)
      if (owner.kind === 'takeover') {
        claims.takenOver.add(object.metadata.uid)
        const note = `taken over from the installation ${owner.from}: this one reconciles it from now on`
        record(object, 'Normal', { reason: 'TakenOver', note })
      }
      return result
    } catch (error) {
      if (isNamespaceGoing(error)) return DONE
      const current = cache.get(key)
      if (current !== undefined && ownershipOf(current, claims).kind === 'foreign')
        return { kind: 'again', afterMs: 0, priority: 'live' }
      // The API server itself may be the problem: then the status cannot be written either.
      if (current !== undefined) await reportRetrying(current, error).catch(() => {})
      throw error
    }
  }

  /** Throws errors that a retry may resolve. What a person has to correct is in the findings. */
  async function sync(given: HeartbeatChannel, signal: AbortSignal) {
    let held = given
    try {
      held = await addFinalizer(client, HEARTBEAT_CHANNELS, given)
      if (held !== given) cache.put(held)
      signal.throwIfAborted()
      const { channelId, change } = await declare(held)
      if (change !== 'unchanged') record(held, 'Normal', CHANGES[change])
      const findings = { installation, sync: { kind: 'synced' }, deliveries: await findDeliveries(channelId) } as const
      const afterMs = resyncMs * (1 - 0.2 * random())
      return { held, findings, result: { kind: 'again', afterMs, priority: 'background' } as const }
    } catch (error) {
      const stalled = toStalled(error, held)
      if (stalled === null) throw error
      const { reason, message } = stalled
      await service.leaveOtherProject({ resource: resourceOf(held), project: await projectOf(held) })
      const before = conditionOf(held.status, 'Stalled')
      if (before?.message !== cutMessage(message)) record(held, 'Warning', { reason, note: message })
      const channelId = held.status?.channelId
      const deliveries = channelId === undefined ? null : await findDeliveries(channelId)
      const findings = { installation, sync: { kind: 'stalled', reason, message }, deliveries } as const
      const retryMs = stalledRetryMs(before?.lastTransitionTime, service.now(), resyncMs)
      return { held, findings, result: { kind: 'stalled', retryMs } as const }
    }
  }

  async function declare(object: HeartbeatChannel) {
    const read = readChannel(object)
    if ('faults' in read) throw new StalledChannel('InvalidSpec', read.faults.join('; '))
    const { namespace, uid, generation } = object.metadata
    const secret = read.secretRef === null ? null : await readSecret(client, namespace!, read.secretRef)
    const given = read.readConfig(secret?.value ?? null)
    if ('faults' in given) throw new StalledChannel('InvalidSpec', given.faults.join('; '))
    const { kind, name, events, muted, afterSeconds } = read
    return service.declareChannel({
      resource: resourceOf(object),
      project: await projectOf(object),
      ...{ kind, name, events, muted, afterSeconds, config: given.config, isRevivable: options.isRevivable },
      version: `${uid}.${generation}/${secret?.version ?? ''}`,
    })
  }

  async function projectOf(object: HeartbeatChannel) {
    const namespace = object.metadata.namespace!
    // Then a person waits for the effect of a change.
    const isAwaited = hasRequest(object) || conditionOf(object.status, 'Stalled') !== undefined
    const allowed = await namespaces.allowedProjects(namespace, isAwaited ? 'fresh' : 'cached')
    return { cluster, namespace, allowed, decidedBy: namespaces.decidedBy, wanted: null }
  }

  /** Null: it is gone meanwhile. */
  async function findDeliveries(channelId: string): Promise<ChannelDeliveries | null> {
    return (await service.findChannelDeliveries(cluster, channelId))[0] ?? null
  }

  async function report(object: HeartbeatChannel, findings: ChannelFindings): Promise<void> {
    const status = computeChannelStatus(object, findings, service.now())
    if (isSameStatus(object.status, status)) return
    const delivering = conditionOf(status, 'Delivering')
    if (delivering?.status === 'False' && conditionOf(object.status, 'Delivering')?.status !== 'False')
      record(object, 'Warning', { reason: delivering.reason, note: delivering.message })
    await replaceStatus(object, status)
  }

  /** A failed resync is not reported. */
  async function reportRetrying(object: HeartbeatChannel, error: unknown): Promise<void> {
    const { status: before, metadata } = object
    if (before?.observedGeneration === metadata.generation || metadata.deletionTimestamp !== undefined) return
    const message = cutMessage(describeRetry(error))
    if (conditionOf(before, 'Reconciling')?.message === message) return
    const findings = { installation, sync: { kind: 'retrying', message }, deliveries: null } as const
    const { conditions = [] } = computeChannelStatus(object, findings, service.now())
    const others = before?.conditions?.filter(({ type }) => type === 'Delivering') ?? []
    const claim = before?.installation === undefined ? { installation } : {}
    // observedGeneration stays: kstatus waits for it.
    await patchStatus({ client, cache }, HEARTBEAT_CHANNELS, object, {
      ...claim,
      conditions: [...conditions, ...others],
    })
  }

  /**
   * The channel that we had for it goes once its owner shows one of its own, and sends what is to be sent. A name of an
   * owner alone is no proof: who may write a status could write any.
   */
  async function leave(key: string, object: HeartbeatChannel, owner: string): Promise<ReconcileResult> {
    const other = object.status?.channelId
    const seen = `${object.metadata.uid} ${other ?? ''}`
    if (reported.get(key) === seen) return DONE
    if (other !== undefined) await service.retireChannel({ cluster, ...splitKey(key) }, other)
    const message = describeForeign(CHANNEL_KIND, owner, installation)
    const conditions = addForeign(object, message, service.now())
    if (!isDeepStrictEqual(conditions, object.status?.conditions))
      await patchStatus({ client, cache }, HEARTBEAT_CHANNELS, object, { conditions })
    reported.set(key, seen)
    record(object, 'Warning', { reason: 'ManagedElsewhere', note: message })
    return DONE
  }

  return reconcile
}

/** Null for an error that a retry corrects. */
function toStalled(error: unknown, { spec }: HeartbeatChannel): StalledChannel | null {
  if (error instanceof StalledChannel) return error
  if (!(error instanceof AppError)) return null
  if (error.field === 'sealingKey') return new StalledChannel('SealingKeyMissing', error.message)
  switch (error.code) {
    case 'invalid_request': {
      const kind = CHANNEL_KINDS.find((kind) => spec[kind] !== undefined)
      return new StalledChannel(
        'InvalidSpec',
        describeError(error, (field) => field.replace('config', `spec.${kind}`)).text,
      )
    }
    case 'forbidden':
      return new StalledChannel('ProjectNotAllowed', error.message)
    case 'not_found':
      return new StalledChannel('ProjectNotFound', error.message)
    case 'conflict':
      return new StalledChannel('ChannelRefused', error.message)
    case 'channel_in_use':
      // The names of checks of another project are not for this namespace.
      return new StalledChannel('ChannelRefused', 'checks of its former project have chosen the channel')
    default:
      return null
  }
}
