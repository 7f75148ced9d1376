/** A kind of channel has few places: its folder, the two lists, and the table of the documents. */

import { globSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { CHANNEL_KINDS, type ChannelKind } from '../../../src/domain/channel.ts'

const DOCUMENT = readFileSync('docs/use/channels.md', 'utf8')
/** The two lists; what the document of the API shows as an example; the channel that the configuration makes. */
const PLACES: Readonly<Partial<Record<ChannelKind, readonly string[]>>> = {
  webhook: ['src/http/api/examples.ts'],
  alertmanager: [
    'src/channels/installation-channel.ts',
    'src/channels/open-channel.ts',
    'src/store/outbox/channels.ts',
  ],
}
const LISTS = ['src/domain/channel.ts', 'src/channels/kinds/index.ts']
const SOURCES = globSync('src/**/*.{ts,sql}').map((path) => ({ path, text: readFileSync(path, 'utf8') }))

it.each(CHANNEL_KINDS)('the kind %s is named in its places only', (kind) => {
  const named = new RegExp(`['"\`]${kind}['"\`]`)
  const places = SOURCES.filter(({ path, text }) => {
    // The first release had a constraint, which a later migration drops.
    const isOurs = path.startsWith(`src/channels/kinds/${kind}/`) || path.endsWith('/0005_outbox.sql')
    // A user has a field of this name.
    const isOfUsers = kind === 'email' && !/channel|delivery|outbox/.test(path)
    return !isOurs && !isOfUsers && named.test(text)
  }).map(({ path }) => path)
  const allowed = [...LISTS, ...(PLACES[kind] ?? [])]
  expect(places.filter((path) => !allowed.includes(path))).toEqual([])
})

it.each(CHANNEL_KINDS)('the document lists the kind %s, and explains it', (kind) => {
  const [, anchor] = new RegExp(`^\\| \\[\`${kind}\`\\]\\(#([\\w-]+)\\) \\|`, 'm').exec(DOCUMENT) ?? []
  expect(anchor).toBeDefined()
  const titles = [...DOCUMENT.matchAll(/^## (.+)$/gm)].map(([, title]) => title!.toLowerCase().replaceAll(' ', '-'))
  expect(titles).toContain(anchor)
})
