/** A fake of a service that channels send to. It refuses what the real service refuses by its documentation. */

import type { ChannelSettings } from '../../../src/domain/channel.ts'
import { type Received, type ReceiverAnswer, startReceiver } from '../receiver.ts'
import type { Fault } from './faults.ts'

/** `well`: it accepts what the real service accepts. The others: what the real one answers to any message. */
export type Mood = 'well' | 'too many' | 'gone'

export interface Service extends AsyncDisposable {
  /** Of a channel at this service. Each secret contains `s3cret`. */
  readonly settings: ChannelSettings
  /** Of a channel at another address; undefined where the operator chooses the address of the service. */
  readonly settingsAt: ((url: string) => ChannelSettings) | undefined
  /** How long it says that it gets too many; null: it does not say. */
  readonly tooManyMs: number | null
  /** What it answers when its address or credential is gone is final at once, not only after a time. */
  readonly isGoneAtOnce: boolean
  /** All texts of each message that it has accepted, oldest first. */
  readonly accepted: readonly string[]
  /** By which the real service, or its reader, knows that each of them is one that it has; null: it does not. */
  readonly keys: readonly (string | null)[]
  /** Why it has refused a message although it was well. */
  readonly refused: readonly string[]
  /** Requests, whatever it has answered. */
  requests(): number
  become(mood: Mood | Fault): void
  /** From now on: 429 with this Retry-After. Undefined where its protocol has none. */
  readonly limit: ((retryAfter: string) => void) | undefined
}

export interface HttpService extends Pick<Service, 'tooManyMs' | 'isGoneAtOnce'> {
  settingsAt(url: string): ChannelSettings
  /** Throws Refusal for what the real service refuses. */
  accept(request: Received): ReceiverAnswer
  /** Absent: the service takes a repeat for another message. */
  keyOf?(request: Received): string
  /** As the real service answers. It repeats of the request what it can. */
  readonly tooMany: ReceiverAnswer
  readonly gone: ReceiverAnswer
}

/** Why the real service does not take a message. */
export class Refusal extends Error {
  readonly answer: ReceiverAnswer
  constructor(why: string, answer: ReceiverAnswer = { status: 400, text: why }) {
    super(why)
    this.answer = answer
  }
}

/** Throws Refusal unless it holds. */
export function demand(holds: boolean, why: string): asserts holds {
  if (!holds) throw new Refusal(why)
}

/** Half of a pair is no character of JSON (RFC 8259, section 8.2). */
function demandText(json: string): void {
  JSON.parse(json, (_, value) => {
    demand(typeof value !== 'string' || value.isWellFormed(), 'half of a pair')
    return value
  })
}

export async function startHttpService(fake: HttpService): Promise<Service> {
  const receiver = await startReceiver()
  const accepted: string[] = []
  const keys: (string | null)[] = []
  const refused: string[] = []
  const answerWell = (request: Received): ReceiverAnswer => {
    try {
      demandText(request.body)
      const answer = fake.accept(request)
      accepted.push(request.body)
      keys.push(fake.keyOf?.(request) ?? null)
      return answer
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refused.push(error.message)
      return error.answer
    }
  }
  const answers: Readonly<Record<Mood, ReceiverAnswer | ((request: Received) => ReceiverAnswer)>> = {
    well: answerWell,
    'too many': fake.tooMany,
    gone: fake.gone,
  }
  receiver.answer(answerWell)
  return {
    settings: fake.settingsAt(receiver.url),
    settingsAt: fake.settingsAt,
    tooManyMs: fake.tooManyMs,
    isGoneAtOnce: fake.isGoneAtOnce,
    accepted,
    keys,
    refused,
    requests: () => receiver.requests.length,
    become: (how) => receiver.answer(typeof how === 'string' ? answers[how] : how.http),
    limit: (retryAfter) => receiver.answer({ status: 429, headers: { 'retry-after': retryAfter } }),
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}
