/** A recorder before an API server in memory that can refuse and withhold its answers. */

import { TransportError } from '../../../src/kubernetes/errors.ts'
import type { StatusDetails } from '../../../src/kubernetes/objects.ts'
import {
  createRecorder,
  type Occurrence,
  type RecorderOptions,
  type Regarding,
} from '../../../src/kubernetes/recorder.ts'
import { anApiError } from '../../support/builders.ts'
import { createManualClock } from '../../support/manual-clock.ts'

export const aRegarding = (overrides: Partial<Regarding> = {}): Regarding => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  namespace: 'shop',
  name: 'nightly',
  uid: 'uid-1',
  ...overrides,
})

export const anOccurrence = (overrides: Partial<Occurrence> = {}): Occurrence => ({
  type: 'Normal',
  reason: 'Created',
  action: 'Create',
  note: 'made it',
  ...overrides,
})

interface Written {
  at: number
  verb: 'create' | 'patch'
  namespace: string
  name: string
  // biome-ignore lint/suspicious/noExplicitAny: read by the tests as JSON
  body: any
}

export const refusal = (status: number, reason: string, details: StatusDetails | null = null) =>
  anApiError(status, { reason, message: `events: ${reason}`, details })

/** One that has not started. */
export function anIdleRecorder(overrides: Partial<RecorderOptions> = {}) {
  const clock = createManualClock()
  const written: Written[] = []
  const existing = new Set<string>()
  const dropped: string[] = []
  const problems: string[] = []
  const behaviour: { fail?: unknown; failOn?: string; hang?: boolean; tries: number; aborted: number } = {
    tries: 0,
    aborted: 0,
  }

  async function receive(entry: Written, signal: AbortSignal | undefined): Promise<object> {
    behaviour.tries += 1
    if (behaviour.hang) {
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))).finally(() => {
        behaviour.aborted += 1
      })
    }
    if (behaviour.fail !== undefined) throw behaviour.fail
    if (behaviour.failOn !== undefined && behaviour.failOn === entry.body.regarding?.uid)
      throw new TransportError('reset')
    const key = `${entry.namespace}/${entry.name}`
    if (entry.verb === 'create' && existing.has(key)) throw refusal(409, 'AlreadyExists')
    if (entry.verb === 'patch' && !existing.has(key)) throw refusal(404, 'NotFound')
    existing.add(key)
    written.push(structuredClone(entry))
    return {}
  }
  const client = {
    create: (_type: object, body: Written['body'], options?: { signal?: AbortSignal }) =>
      receive(
        { at: clock.now(), verb: 'create', namespace: body.metadata.namespace, name: body.metadata.name, body },
        options?.signal,
      ),
    mergePatch: (
      _type: object,
      { namespace, name }: { namespace?: string; name: string },
      body: object,
      options?: { signal?: AbortSignal },
    ) => receive({ at: clock.now(), verb: 'patch', namespace: namespace!, name, body }, options?.signal),
  } as unknown as RecorderOptions['client']

  const recorder = createRecorder({
    client,
    clock,
    controller: 'example.com/controller',
    instance: 'pod-1',
    onProblem: (error) => void problems.push(error.message),
    onDropped: (reason) => void dropped.push(reason),
    ...overrides,
  })
  /** Records an occurrence, and waits until nothing more can happen at once. */
  const write = async (occurrence: Partial<Occurrence> = {}, regarding: Partial<Regarding> = {}) => {
    recorder.record(aRegarding(regarding), anOccurrence(occurrence))
    await clock.settle()
  }
  return { clock, recorder, write, client, written, existing, dropped, problems, behaviour }
}

export function aRecorder(overrides: Partial<RecorderOptions> = {}) {
  const idle = anIdleRecorder(overrides)
  idle.recorder.start()
  return idle
}

export const verbs = (written: Written[]) => written.map(({ verb, body }) => `${verb} ${body.series?.count ?? 1}`)
