/**
 * A workflow of Microsoft Teams: the trigger, and what the workflow then does with the card. By the schema of Adaptive Cards
 * 1.4, and the limits of the connector: https://learn.microsoft.com/connectors/teams.
 */

import { demand, Refusal, startHttpService } from './service.ts'

const PATH =
  '/powerautomate/automations/direct/workflows/1/triggers/manual/paths/invoke?api-version=1&sv=1.0&sig=s3cret'
const fault = (code: string, message: string) => JSON.stringify({ error: { code, message } })
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const STYLES: Readonly<Record<string, readonly unknown[]>> = {
  size: ['Small', 'Default', 'Medium', 'Large', 'ExtraLarge'],
  weight: ['Lighter', 'Default', 'Bolder'],
  color: ['Default', 'Dark', 'Light', 'Accent', 'Good', 'Warning', 'Attention'],
  isSubtle: [true, false],
  fontType: ['Default', 'Monospace'],
}

export const startTeams = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'teams', url: url + PATH }) as const,
    accept({ path, body }) {
      if (path !== PATH)
        throw new Refusal('no signature', { status: 401, text: fault('DirectApiAuthorizationRequired', 'No sig') })
      demandCard(body)
      return { status: 202 }
    },
    tooMany: { status: 429, headers: { ...JSON_TYPE, 'retry-after': '17' }, text: fault('TooManyRequests', PATH) },
    tooManyMs: 17_000,
    gone: {
      status: 400,
      headers: JSON_TYPE,
      text: fault('WorkflowTriggerIsNotEnabled', `Could not execute 's3cret' with state 'Deleted'`),
    },
    isGoneAtOnce: true,
  })

/** Throws Refusal for what Teams would not post, or would show otherwise than as text. */
export function demandCard(body: string): void {
  demand(Buffer.byteLength(body) <= 28_000 && Buffer.byteLength(body, 'utf16le') <= 28_000, 'Request Entity too large')
  const { type, attachments } = JSON.parse(body)
  demand(type === 'message' && attachments.length === 1, 'the workflow posts the cards of attachments')
  const [{ contentType, contentUrl, content, ...others }] = attachments
  demand(contentType === 'application/vnd.microsoft.card.adaptive' && contentUrl === null, 'no card')
  demand(Object.keys(others).length === 0, 'unknown field of an attachment')
  const { $schema, type: kind, version, msteams, body: blocks, actions, ...unknown } = content
  demand(typeof $schema === 'string' && kind === 'AdaptiveCard' && version === '1.4', 'no card that clients show')
  // Entities would make mentions of `<at>`.
  demand(JSON.stringify(msteams) === '{"width":"Full"}' && Object.keys(unknown).length === 0, 'unknown field of a card')
  demand(blocks.length > 0, 'an empty card')
  for (const [index, block] of blocks.entries()) {
    demand(Object.keys(block).join() === 'type,inlines' && block.type === 'RichTextBlock', 'text that can be Markdown')
    for (const { type, text, selectAction, ...style } of block.inlines) {
      demand(type === 'TextRun' && typeof text === 'string' && text !== '', 'an empty run is not shown')
      demand(!/\{\{(?:DATE|TIME)\(/.test(text), 'a text that clients show as a date')
      if (selectAction !== undefined) {
        // Only what a person wrote about a check has links, which show their own address.
        demand(blocks[index - 1]?.inlines[0].text === 'About this check:', 'untrusted text became a link')
        demand(JSON.stringify(selectAction) === JSON.stringify({ type: 'Action.OpenUrl', url: text }), 'other words')
        demand(/^https?:$/.test(new URL(text).protocol), 'no address of a page')
      }
      for (const [name, value] of Object.entries(style)) demand(STYLES[name]?.includes(value) === true, `no ${name}`)
    }
  }
  for (const { type, title, url, ...rest } of actions) {
    demand(type === 'Action.OpenUrl' && title !== '' && Object.keys(rest).length === 0, 'unknown action')
    demand(/^https?:$/.test(new URL(url).protocol), 'no address of a page')
  }
}
