/** Publishes the ping URL of a check, withdraws it from where it was before, and reports both as Events and in metrics. */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { CheckRecord } from '../../store/checks/checks.ts'
import { findUrlHolder } from '../../store/checks/retained-checks.ts'
import type { Context } from '../../store/context.ts'
import type { HeartbeatCheck, PublishedTarget, PublishTarget } from '../heartbeat-check.ts'
import type { Reporter } from '../status/report.ts'
import { Stalled } from '../status/stalled.ts'
import { type BeforeSharing, type FindHolder, publishUrl, releaseFormer } from './publish.ts'

export interface PublisherOptions {
  readonly client: KubernetesClient
  /** Without a slash at the end. */
  readonly pingUrl: () => string
  readonly context: Pick<Context, 'database'>
  readonly cluster: string
  readonly onPublish: (result: 'written' | 'unchanged' | 'refused') => void
}

/** What is published, and for whom. */
export interface Publication {
  readonly object: HeartbeatCheck
  /** Null: nowhere. */
  readonly target: PublishTarget | null
  readonly check: CheckRecord
  /** One Event reports a new check and its URL: with a thousand resources applied at once each Event counts. */
  readonly isNew: boolean
  /** As publishUrl's. */
  readonly beforeSharing: BeforeSharing
}

export interface Published {
  /** From a predecessor of the resource. */
  readonly isFromPredecessor: boolean
}

/** Throws Stalled for what a person has to correct. */
export type Publisher = (publication: Publication) => Promise<Published>

export function createPublisher(options: PublisherOptions, recordEvent: Reporter['recordEvent']): Publisher {
  const { client, context, cluster, pingUrl, onPublish } = options

  async function release(object: HeartbeatCheck, wanted: PublishTarget | null, url: string): Promise<void> {
    const before = object.status?.published
    if (before === undefined || (wanted !== null && isSameObject(before, wanted))) return
    const rejection = await releaseFormer(client, object, before, url)
    if (rejection !== null) throw new Stalled('PublishRefused', rejection)
  }

  /** The new object is written before the old one is withdrawn: a job always finds a URL. */
  return async function publish({ object, target, check, isNew, beforeSharing }) {
    const url = `${pingUrl()}/ping/${check.publicId}`
    if (target === null) {
      await release(object, null, url)
      if (isNew) recordEvent(object, 'Normal', { ...CREATED, note: `${CREATED.note} from now on` })
      return { isFromPredecessor: false }
    }
    const { namespace } = object.metadata as { namespace: string }
    const findHolder: FindHolder = (publicIds) =>
      findUrlHolder(context.database, { cluster, namespace }, target, publicIds)
    const result = await publishUrl(client, object, target, url, beforeSharing, findHolder)
    if (result.kind === 'rejected') {
      if (isNew)
        recordEvent(object, 'Normal', { ...CREATED, note: `${CREATED.note}, as soon as its ping URL is published` })
      onPublish('refused')
      throw new Stalled(result.reason, result.message)
    }
    onPublish(result.isChanged ? 'written' : 'unchanged')
    await release(object, target, url)
    const where = `the ping URL is in ${target.kind} ${target.name}, key ${target.key}`
    if (isNew) recordEvent(object, 'Normal', { ...CREATED, note: `${CREATED.note} from now on; ${where}` })
    else if (result.isChanged) recordEvent(object, 'Normal', { reason: 'Published', note: where })
    return { isFromPredecessor: result.isFromPredecessor }
  }
}

const CREATED = { reason: 'Created', note: 'the service watches over the job' }

function isSameObject(a: PublishedTarget, b: PublishedTarget): boolean {
  return a.kind === b.kind && a.name === b.name
}
