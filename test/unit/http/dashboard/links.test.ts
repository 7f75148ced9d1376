import { expect, it } from 'vitest'
import { withLinks } from '../../../../src/http/dashboard/words/words.ts'

const WIKI = 'https://wiki.example.com/backup'
/** Each link in brackets. */
const shown = (text: string) =>
  withLinks(text)
    .toString()
    .replaceAll(/<a href="([^"]*)" rel="noopener noreferrer">([^<]*)<\/a>/g, (_, href, words) => {
      expect(words).toBe(href)
      return `[${href}]`
    })

it.each([
  ['no address', 'no address'],
  [WIKI, `[${WIKI}]`],
  [`Runbook: ${WIKI}.`, `Runbook: [${WIKI}].`],
  [`${WIKI}, ${WIKI}; ${WIKI}: ${WIKI}! ${WIKI}?`, `[${WIKI}], [${WIKI}]; [${WIKI}]: [${WIKI}]! [${WIKI}]?`],
  [`${WIKI}?a=1.5&b=x...`, `[${WIKI}?a=1.5&amp;b=x]...`],
  [`(see ${WIKI})`, `(see [${WIKI}])`],
  [`(see ${WIKI}.)`, `(see [${WIKI}].)`],
  [`(${WIKI}_(old))`, `([${WIKI}_(old)])`],
  [`${WIKI}_(old).`, `[${WIKI}_(old)].`],
  [`${WIKI}/`, `[${WIKI}/]`],
  ['https://... or http://)', 'https://... or http://)'],
])('%j is shown as %j', (text, words) => {
  expect(shown(text)).toBe(words)
})

it('a text of many marks is read in no time', () => {
  const text = `https://a${').'.repeat(8_000)}`
  expect(shown(text)).toBe(`[https://a]${').'.repeat(8_000)}`)
})
