import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeEvent, type EventText } from '../../../src/channels/kinds/event-text.ts'
import { cutLine, fitLines, fitMessage } from '../../../src/channels/kinds/fit.ts'
import { aFlipEvent, aLastPing } from '../../support/events.ts'

const wordsOf = (output: string | null, description: string | null): EventText => ({
  ...describeEvent(aFlipEvent()),
  output: output === null ? null : { title: 'Output', text: output },
  description,
})
const textsOf = ({ output, description }: EventText) => [output?.text ?? '', description ?? '']
const fitWords = (words: EventText, fits: (words: EventText) => boolean) => fitMessage(words, (same) => same, fits)
const within = (limit: number) => (words: EventText) => textsOf(words).join('').length <= limit

describe('words that are fitted', () => {
  it('are the same when they fit, just so', () => {
    const words = wordsOf('o'.repeat(60), 'd'.repeat(40))
    expect(fitWords(words, within(100))).toBe(words)
    expect(fitWords(words, within(99))).not.toEqual(words)
  })

  it('keep the end of the output and the beginning of the description, the same length of each', () => {
    const fitted = fitWords(wordsOf(`${'o'.repeat(500)}END`, `BEGIN${'d'.repeat(500)}`), within(101))
    expect(textsOf(fitted)).toEqual([`…${'o'.repeat(46)}END`, `BEGIN${'d'.repeat(44)}…`])
  })

  it('keep a short description whole', () => {
    const fitted = fitWords(wordsOf('o'.repeat(500), 'Runbook: page 7'), within(100))
    expect(textsOf(fitted)).toEqual([`…${'o'.repeat(84)}`, 'Runbook: page 7'])
  })

  it('keep an address whole, or not at all', () => {
    const description = `See https://wiki.example.com/backup. ${'d'.repeat(100)}`
    const upTo = (length: number) => fitWords(wordsOf(null, description), within(length)).description
    expect(upTo(36)).toBe('See https://wiki.example.com/backup…')
    expect(upTo(35)).toBe('See …')
  })

  it('lose both where they would say nothing', () => {
    expect(textsOf(fitWords(wordsOf('o'.repeat(50), null), within(20)))).toEqual([`…${'o'.repeat(19)}`, ''])
    expect(textsOf(fitWords(wordsOf('o'.repeat(50), null), within(19)))).toEqual(['', ''])
    expect(textsOf(fitWords(wordsOf(null, 'd'.repeat(50)), within(19)))).toEqual(['', ''])
  })

  it('are as they were but for these two, and between characters', () => {
    const words = describeEvent(aFlipEvent({ check: { description: '🔥'.repeat(90) }, lastPing: aLastPing() }))
    const fitted = fitWords(words, within(60))
    expect({ ...fitted, output: null, description: null }).toEqual({ ...words, output: null, description: null })
    expect(fitted.description).toBe(`${'🔥'.repeat(25)}…`)
  })

  it('fit, and are the longest that do', () => {
    const text = fc.option(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }))
    fc.assert(
      fc.property(text, text, fc.nat(300), (output, description, limit) => {
        const words = wordsOf(output, description)
        const fitted = fitWords(words, within(limit))
        expect(within(limit)(fitted)).toBe(true)
        // A character of a few units, the ellipsis of each of the two.
        const lost = textsOf(fitted).join('') === '' ? 40 : 30
        if (!within(limit)(words) && limit > 100)
          expect(textsOf(fitted).join('').length).toBeGreaterThan(limit - 2 * lost)
      }),
    )
  })
})

describe('lines that are fitted', () => {
  const join = (shown: readonly string[]) => ['head', ...shown].join('\n')

  it.each([
    [14, 'head\none\ntwo\n3'.length, 'head\none\ntwo\n3'],
    [13, 13, 'head\none\ntwo'],
    [4, 4, 'head'],
  ])('within %d are the first ones', (_, limit, text) => {
    expect(fitLines(['one', 'two', '3'], join, (message) => message.length <= limit)).toBe(text)
  })
})

describe('a line of a digest', () => {
  const aCheck = { tone: 'failure', name: 'Job 1', change: ' is down', reason: 'No ping came', link: '' } as const

  it('has the check, what has happened, and why', () => {
    expect(cutLine(aCheck)).toBe('Job 1 is down: No ping came')
  })

  it('loses the end of a long name and of a long reason, never the change', () => {
    expect(cutLine({ ...aCheck, name: 'n'.repeat(100) })).toBe(`${'n'.repeat(100)} is down: No ping came`)
    expect(cutLine({ ...aCheck, name: 'n'.repeat(101) })).toBe(`${'n'.repeat(99)}… is down: No ping came`)
    expect(cutLine({ ...aCheck, reason: 'r'.repeat(165) })).toBe(`Job 1 is down: ${'r'.repeat(165)}`)
    expect(cutLine({ ...aCheck, reason: 'r'.repeat(166) })).toBe(`Job 1 is down: ${'r'.repeat(164)}…`)
  })
})
