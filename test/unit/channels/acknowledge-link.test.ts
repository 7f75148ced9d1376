/** The link that acknowledges, in the messages of each kind: of a failure and its reminders, and of nothing else. */

import { expect, it } from 'vitest'
import { buildAlert } from '../../../src/channels/kinds/alertmanager/alert.ts'
import { renderMail } from '../../../src/channels/kinds/email/mail.ts'
import { createLinks, linkToAcknowledge } from '../../../src/channels/kinds/kind.ts'
import { renderMessage } from '../../../src/channels/kinds/slack/message.ts'
import { renderPayload } from '../../../src/channels/kinds/webhook/payload.ts'
import type { Event } from '../../../src/domain/event.ts'
import { aFlipEvent, aTestEvent } from '../../support/events.ts'

const links = createLinks(
  () => 'https://example.com/ops/api/v1/',
  true,
  ({ checkId, since }) => `${checkId}.${since}`,
)
const INCIDENT = '2026-11-21T02:59:59.999Z'
const down = aFlipEvent({ facts: { incident_at: INCIDENT } })
const LINK = `https://example.com/ops/ack/${down.check.id}.${Date.parse(INCIDENT)}`
const envelope = { sender: { name: '', address: 'heartbeat@example.com' }, to: [], channelName: 'On call' }

it('is below the site, and names the check and the beginning of its incident', () => {
  expect(linkToAcknowledge(links, down)).toBe(LINK)
  expect(linkToAcknowledge(links, aFlipEvent({ facts: { incident_at: INCIDENT, reminder: 2 } }))).toBe(LINK)
})

it.each<[string, Event]>([
  ['a check that is up', aFlipEvent({ type: 'check.up', facts: { incident_at: INCIDENT } })],
  ['a check without an open incident', aFlipEvent()],
  ['a test', aTestEvent],
])('is in no message of %s', (_, event) => {
  expect(linkToAcknowledge(links, event)).toBeNull()
  const texts = [renderMessage(event, links), renderMail(event, links, envelope)].map((one) => JSON.stringify(one))
  for (const text of [...texts, renderPayload(event, links)]) expect(text).not.toMatch(/I have it|\/ack\/|acknowledge/)
})

it('is null where none is made', () => {
  expect(
    linkToAcknowledge(
      createLinks(() => 'https://example.com'),
      down,
    ),
  ).toBeNull()
})

it('is in the blocks and in the text of Slack', () => {
  const { text, blocks } = renderMessage(down, links)
  expect(text.split('\n')).toContain(`I have it: <${LINK}>`)
  expect(blocks.at(-1)).toMatchObject({
    type: 'context',
    elements: [
      { text: expect.stringContaining('|Open the check>') },
      { text: `<${LINK}|I have it>` },
      { type: 'plain_text' },
    ],
  })
})

it('is in both parts of a mail', () => {
  const { text, html } = renderMail(down, links, envelope)
  expect(text).toContain(`\n\nI have it: ${LINK}\n\n-- \n`)
  expect(html).toContain(`<p>I have it: <a href="${LINK}">${LINK}</a></p>`)
})

it('is an annotation of an alert', () => {
  expect(buildAlert(down, {}, LINK).annotations.acknowledge_url).toBe(LINK)
  expect(buildAlert(down, {}).annotations).not.toHaveProperty('acknowledge_url')
})

it('is among the links of a webhook', () => {
  expect(JSON.parse(renderPayload(down, links)).data.links.acknowledge).toBe(LINK)
})
