/** Fits what a message says into the limit of a service, for formats in which a text grows by its escapes. */

import { indivisible } from './addresses.ts'
import { cutEnd, cutStart } from './cut.ts'
import type { CheckLine } from './digest-text.ts'
import type { EventText } from './event-text.ts'

/** UTF-16 units: with fewer, a text says nothing. */
const MIN_LENGTH = 20

/**
 * The message with as much of the end of the output and of the beginning of the description as fits: each keeps the
 * same length at most, and nothing else gives way. `fits` must be true without both.
 */
export function fitMessage<Message>(
  words: EventText,
  render: (words: EventText) => Message,
  fits: (message: Message) => boolean,
): Message {
  const whole = render(words)
  if (fits(whole)) return whole
  const { output, description } = words
  const upTo = (length: number): EventText =>
    length < MIN_LENGTH
      ? { ...words, output: null, description: null }
      : {
          ...words,
          output: output && { ...output, text: cutStart([...output.text], length) },
          description: description && cutEnd(indivisible(description), length),
        }
  let [fitting, tooLong] = [0, Math.max(output?.text.length ?? 0, description?.length ?? 0)]
  while (tooLong - fitting > 1) {
    const length = Math.floor((fitting + tooLong) / 2)
    if (fits(render(upTo(length)))) fitting = length
    else tooLong = length
  }
  return render(upTo(fitting))
}

/** The message with as many of the lines, from the first on, as fit. `fits` must be true without any. */
export function fitLines<Message>(
  lines: readonly string[],
  render: (shown: readonly string[]) => Message,
  fits: (message: Message) => boolean,
): Message {
  for (let shown = lines.length; shown > 0; shown -= 1) {
    const message = render(lines.slice(0, shown))
    if (fits(message)) return message
  }
  return render([])
}

/** UTF-16 units, before they are escaped. */
const LINE_LIMITS = { name: 100, line: 180 } as const

/** A check of a digest on a line, which loses the end of the name and the end of the reason, never the change. */
export function cutLine({ name, change, reason }: CheckLine): string {
  const start = `${cutEnd([...name], LINE_LIMITS.name)}${change}: `
  return start + cutEnd([...reason], LINE_LIMITS.line - start.length)
}

export const isText = (text: string | null): text is string => text !== null
