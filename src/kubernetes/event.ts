/** An Event of events.k8s.io/v1, within the server's limits. */

import { createHash, randomBytes } from 'node:crypto'
import { type ResourceType, toMicroTime } from './objects.ts'

export const EVENTS: ResourceType = { group: 'events.k8s.io', version: 'v1', plural: 'events' }

export interface Regarding {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion?: string
}

export interface Occurrence {
  readonly type: 'Normal' | 'Warning'
  /** One CamelCase word, for programs. */
  readonly reason: string
  /** The action that was taken. */
  readonly action: string
  /** For people. Cut at 1,024 bytes, the server's limit. */
  readonly note: string
  /** Makes the Event's name: occurrences with one id, also of several processes, are written once. */
  readonly id?: string
  /**
   * Called once when the Event is written or dropped for good; without an id, when it is counted. Not called for one
   * that is lost, as when too many wait or the API server is away for minutes: the occurrence is to be recorded again.
   */
  readonly onWritten?: () => void
}

/** The reporting controller, a qualified name such as `example.com/controller`, and its instance. */
export interface Reporter {
  readonly controller: string
  readonly instance: string
}

const NOTE_BYTES = 1_024
const NAME_LENGTH = 253
const INSTANCE_LENGTH = 128

export function describeEvent(
  { controller, instance }: Reporter,
  regarding: Regarding,
  { type, reason, action, note }: Occurrence,
  name: string,
  atMs: number,
) {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: regarding.namespace },
    eventTime: toMicroTime(atMs),
    reportingController: controller,
    reportingInstance: instance.slice(0, INSTANCE_LENGTH),
    action,
    reason,
    regarding,
    note: cutNote(note),
    type,
  }
}

/** It begins with the namespace: in the queue, Events of one namespace do not hold up Events of another namespace. */
export function keyOfEvent({ apiVersion, kind, namespace, name, uid }: Regarding, occurrence: Occurrence): string {
  const { type, reason, action, note, id } = occurrence
  const what = id === undefined ? [type, reason, action, note] : [id]
  return `${namespace}/${JSON.stringify([apiVersion, kind, name, uid, ...what])}`
}

/** Returns a name like client-go's: the object's name, a dot, and 16 hex digits, random or made from `id`. */
export function nameEvent({ name, uid }: Regarding, id: string | undefined): string {
  const suffix =
    id === undefined
      ? randomBytes(8).toString('hex')
      : createHash('sha256').update(`${uid}\n${id}`).digest('hex').slice(0, 16)
  const stem = name.slice(0, NAME_LENGTH - suffix.length - 1).replace(/[-.]+$/, '')
  return `${stem}.${suffix}`
}

/** Cuts a note to the server's limit in bytes, between two characters, with `…` at the end. */
export function cutNote(note: string): string {
  const text = note.toWellFormed()
  if (Buffer.byteLength(text) <= NOTE_BYTES) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(NOTE_BYTES - Buffer.byteLength('…')))
  return `${text.slice(0, read)}…`
}
