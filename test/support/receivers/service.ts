/** A fake of a service that channels send to. It refuses what the real service refuses by its documentation. */

import type { ChannelSettings } from '../../../src/domain/channel.ts'
import { type Received, type ReceiverAnswer, startReceiver } from '../receiver.ts'

/** `well`: it accepts what the real service accepts. The others: what it answers to any message. */
export type Mood = 'well' | 'too many' | 'gone' | 'broken' | 'away'

export interface Service extends AsyncDisposable {
  /** Of a channel at this service. Each secret contains `s3cret`. */
  readonly settings: ChannelSettings
  /** How long it says that it gets too many; null: it does not say. */
  readonly tooManyMs: number | null
  /** What it answers when its address or credential is gone is final at once, not only after a time. */
  readonly isGoneAtOnce: boolean
  /** All texts of each message that it has accepted, oldest first. */
  readonly accepted: readonly string[]
  /** Why it has refused a message although it was well. */
  readonly refused: readonly string[]
  become(mood: Mood): void
}

export interface HttpService
  extends Omit<Service, 'settings' | 'accepted' | 'refused' | 'become' | keyof AsyncDisposable> {
  settingsAt(url: string): ChannelSettings
  /** Throws Refusal for what the real service refuses. */
  accept(request: Received): ReceiverAnswer
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

export async function startHttpService(fake: HttpService): Promise<Service> {
  const receiver = await startReceiver()
  const accepted: string[] = []
  const refused: string[] = []
  const answerWell = (request: Received): ReceiverAnswer => {
    try {
      const answer = fake.accept(request)
      accepted.push(request.body)
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
    // What a proxy or a framework does with an error: it repeats the whole request.
    broken: ({ method, path, headers, body }) => ({
      status: 500,
      text: `${method} ${path} failed: ${JSON.stringify(headers)} ${body.slice(0, 500)}`,
    }),
    away: 'reset',
  }
  receiver.answer(answerWell)
  return {
    settings: fake.settingsAt(receiver.url),
    tooManyMs: fake.tooManyMs,
    isGoneAtOnce: fake.isGoneAtOnce,
    accepted,
    refused,
    become: (mood) => receiver.answer(answers[mood]),
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}
