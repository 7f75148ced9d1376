/** An Event of events.k8s.io/v1, by the server's rules for one. */

import { createHash, randomBytes } from 'node:crypto'
import { type ResourceType, toMicroTime } from './objects.ts'

export const EVENTS: ResourceType = { group: 'events.k8s.io', version: 'v1', plural: 'events' }

export interface Regarding {
  readonly apiVersion: string
  readonly kind: string
  /** Empty for an object without one: its Events are in `default`. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion?: string
}

export interface Occurrence {
  readonly type: 'Normal' | 'Warning'
  /** Why, in one CamelCase word, for machines. */
  readonly reason: string
  /** What was done about it. */
  readonly action: string
  /** For people. Cut at 1,024 bytes, the server's limit. */
  readonly note: string
  readonly id?: string
  /** It waits behind those that are not, and while there is a backlog of work that the server has to do first. */
  readonly isPatient?: boolean
}

/** Who reports: a qualified name such as `example.com/controller`, and which of its processes. */
export interface Reporter {
  readonly controller: string
  readonly instance: string
}

const NOTE_BYTES = 1_024
const NAME_LENGTH = 253
const INSTANCE_LENGTH = 128

export function describeEvent(
  { controller, instance }: Reporter,
  { apiVersion, kind, namespace, name: objectName, uid, resourceVersion }: Regarding,
  { type, reason, action, note }: Occurrence,
  name: string,
  atMs: number,
) {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: namespaceOf({ namespace }) },
    eventTime: toMicroTime(atMs),
    reportingController: controller,
    reportingInstance: instance.slice(0, INSTANCE_LENGTH),
    action,
    reason,
    regarding: { apiVersion, kind, namespace, name: objectName, uid, ...(resourceVersion && { resourceVersion }) },
    note: cutNote(note),
    type,
  }
}

/** The server takes Events on objects without a namespace only there. */
export const namespaceOf = ({ namespace }: Pick<Regarding, 'namespace'>) => namespace || 'default'

export function keyOfEvent({ apiVersion, kind, namespace, name, uid }: Regarding, occurrence: Occurrence): string {
  const { type, reason, action, note, id } = occurrence
  const told = id === undefined ? [type, reason, action, note] : [id]
  return JSON.stringify([apiVersion, kind, namespace, name, uid, ...told])
}

/** As client-go names them: the object's name, a point, a number. */
export function nameEvent({ name, uid }: Regarding, id: string | undefined): string {
  const suffix =
    id === undefined
      ? randomBytes(8).toString('hex')
      : createHash('sha256').update(`${uid}\n${id}`).digest('hex').slice(0, 16)
  const stem = name.slice(0, NAME_LENGTH - suffix.length - 1).replace(/[-.]+$/, '')
  // Some kinds allow names that an Event cannot have.
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(stem) ? `${stem}.${suffix}` : suffix
}

/** Bytes are what the server counts. Cut between two characters, with a sign of it. */
export function cutNote(note: string): string {
  const text = note.toWellFormed()
  if (Buffer.byteLength(text) <= NOTE_BYTES) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(NOTE_BYTES - Buffer.byteLength('…')))
  return `${text.slice(0, read)}…`
}
