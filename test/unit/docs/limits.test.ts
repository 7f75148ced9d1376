/** docs/security/threats.md says the limits of the HTTP edge as the code has them. */

import { expect, it } from 'vitest'
import { LIMITS } from '../../../src/domain/limits.ts'
import * as edge from '../../../src/http/limits.ts'
import { MOST_SHORT_CHUNKS, SHORT_CHUNK_BYTES } from '../../../src/runtime/short-chunks.ts'
import { readText } from '../../support/documents.ts'

const ROWS = readText('docs/security/threats.md').split('\n')
const number = (value: number) => value.toLocaleString('en')
const seconds = (ms: number) => `${ms / 1_000} s`

const { LISTS, LIST_READS, PAGES, OPEN_PAGES, CHANGES, COMPRESSIONS, TURN_MS } = edge

it.each([
  ['lists at the same time', [`${LIST_READS.atOnce} are read, ${LISTS.atOnce} are`, `up to ${seconds(TURN_MS)}`]],
  [
    'lists of one organization',
    [`${LIST_READS.perKey} of the ${LIST_READS.atOnce}, ${LISTS.perKey} of the ${LISTS.atOnce}`],
  ],
  [
    'a client that reads nothing',
    [
      `after ${seconds(edge.UNREAD_MS)} (management), ${seconds(edge.UNREAD_SCRAPE_MS)} (`,
      `after ${seconds(edge.LIST_MS)}, one of healthchecks' API after ${edge.WHOLE_LIST_MS / 60_000} minutes`,
    ],
  ],
  [
    'a head',
    [
      `${number(edge.HEAD_BYTES)} bytes. A header that the service parses: ${number(edge.HEADER_BYTES)} bytes`,
      `\`Cookie\` ${number(edge.CREDENTIAL_BYTES)};`,
      `within ${seconds(edge.HEAD_MS)}, the whole request within ${seconds(edge.REQUEST_MS)}`,
    ],
  ],
  ['a body of the management API', [`${number(LIMITS.apiBodyBytes)} bytes`]],
  ['bodies that are being read, or wait for their response', [`${edge.BODIES_BYTES / 1_048_576} MiB in all`]],
  ['a body in short pieces', [`${number(MOST_SHORT_CHUNKS)} chunks of less than ${SHORT_CHUNK_BYTES} bytes`]],
  ['parameters of a query, fields of a form', [`${number(edge.PARAMETERS)}, then 400`]],
  ['connections of a port', [edge.ADDRESS_PART === 4 ? 'A quarter for one address' : 'another part']],
  ['requests of a connection without a response', [`${edge.UNANSWERED}: they`, `after ${edge.IGNORED} more`]],
  ['responses that are compressed', [`${COMPRESSIONS.atOnce} at a time, ${COMPRESSIONS.waiting} wait`]],
  [
    'the log-in page',
    [`${OPEN_PAGES.atOnce} at a time, ${OPEN_PAGES.perKey} of an address`, `up to ${seconds(TURN_MS)}`],
  ],
  ['requests to the dashboard of one user', [`${number(edge.DASHBOARD_REQUESTS)} in a minute`]],
  ['badges of a badge key', [`${number(edge.BADGES)} in a minute`]],
  [
    'links of messages that we have not signed',
    [`${edge.FORGED_LINKS.address} in a minute from an address`, `${edge.FORGED_LINKS.network} from an IPv6 /56`],
  ],
  ['requests by the link of one check', [`${edge.LINK_REQUESTS} in a minute`]],
  [
    'pages and changes of the dashboard at the same time',
    [
      `${PAGES.atOnce} pages are read, ${PAGES.perKey} of an organization`,
      `${CHANGES.atOnce} changes, ${CHANGES.perKey} of an organization`,
      `up to ${seconds(TURN_MS)}`,
    ],
  ],
  ['a form', [`${number(LIMITS.apiBodyBytes)} bytes, ${number(edge.PARAMETERS)} fields`]],
  [
    'pages that wait for changes (`/live`)',
    [
      `${edge.STREAMS_PER_SESSION} for a session and ${edge.STREAMS_PER_USER} for a user`,
      `${number(edge.STREAMS)} in all`,
      `${edge.STREAM_BYTES / 1_024} KB unread`,
    ],
  ],
  ['`/metrics`', [`${edge.SCRAPES} scrapes`]],
])('%s', (what, texts) => {
  const row = ROWS.find((line) => line.startsWith(`| ${what} |`))
  for (const text of texts) expect(row).toContain(text)
})

it('unknown credentials', () => {
  const lines = readText('docs/security/security.md').split('\n')
  const line = lines.find((row) => row.startsWith('- **Unknown credentials**'))
  expect(line).toContain(`after ${edge.REJECTIONS} responses with 401 to an address in a minute`)
})
