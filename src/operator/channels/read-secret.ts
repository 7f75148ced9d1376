/** The value of a channel in a Secret. Only Secrets that are labelled for it are used. */

import { KINDS } from '../../channels/kinds/index.ts'
import { getOrNull, type KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import { CHANNEL_LABEL } from '../names.ts'
import { describeGrant } from '../publish/missing-right.ts'
import { TYPES } from '../publish/published-object.ts'
import { StalledResource } from '../resource/stalled.ts'
import type { ChannelStalledReason, ReadChannel, SecretRef } from '../schema/channel.ts'

export class StalledChannel extends StalledResource<ChannelStalledReason> {}

interface Secret extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>
}

export interface SecretValue {
  readonly value: string
  /** Another text after each change of the Secret. */
  readonly version: string
}

/** Throws StalledChannel where there is no such value, or it may not be read. No message has a value. */
export async function readSecret(
  client: Pick<KubernetesClient, 'get'>,
  namespace: string,
  { name, key }: SecretRef,
): Promise<SecretValue> {
  const missing = (what: string) => new StalledChannel('SecretNotFound', what)
  const secret = await getOrNull<Secret>(client, TYPES.Secret, { namespace, name }).catch((error) => {
    if (!hasStatus(error, 403)) throw error
    const grant = describeGrant(error, namespace)
    const why = grant === null ? error.message : `${grant} (${error.message})`
    throw new StalledChannel('SecretForbidden', `Secret ${name} cannot be read without the right to; ${why}`)
  })
  if (secret === null) throw missing(`there is no Secret ${name} in this namespace: create it`)
  const { labels, uid, resourceVersion } = secret.metadata
  if (labels?.[CHANNEL_LABEL] !== 'true')
    throw missing(`Secret ${name} is not for channels: give it the label ${CHANNEL_LABEL}: "true"`)
  const encoded = secret.data?.[key]
  if (encoded === undefined) throw missing(`Secret ${name} has no key ${key}: add it, or name another key`)
  // A file that a Secret is made of often ends with a line break.
  const value = Buffer.from(encoded, 'base64').toString('utf8').trim()
  return { value, version: `${uid}.${resourceVersion}` }
}

/** Null: the channel names none. Throws StalledChannel as `readSecret` does, and for a value of another form. */
export async function readSigningSecret(
  client: Pick<KubernetesClient, 'get'>,
  namespace: string,
  { kind, signingSecretRef: ref }: Pick<ReadChannel, 'kind' | 'signingSecretRef'>,
): Promise<SecretValue | null> {
  if (ref === null) return null
  const read = await readSecret(client, namespace, ref)
  const { form, isOfForm } = KINDS[kind].config.secret!
  if (isOfForm(read.value)) return read
  throw new StalledChannel('InvalidSpec', `the value of the key ${ref.key} of Secret ${ref.name} must be ${form}`)
}
