/** The signing secret of a webhook, which is shown once: in the response of the form that makes it. */

import type { ChannelRecord } from '../../../../channels/find-channels.ts'
import { KINDS } from '../../../../channels/kinds/index.ts'
import { findRotation, rotateSecret } from '../../../../channels/rotate-secret.ts'
import { AppError } from '../../../../domain/errors.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { html, isolated } from '../../html.ts'
import { action, type Page, page } from '../../page.ts'
import { confirm, copyButton } from '../../ui/parts.ts'
import { findChangeable } from './changeable-channel.ts'

export const channelSecretRoutes = [
  page('/channels/{id}/rotate-secret', 'admin', async (request) => {
    const { id, name, kind } = await findChangeable(request)
    if (KINDS[kind].config.newSecret === undefined)
      throw new AppError('conflict', `a channel of the kind ${kind} has no signing secret`)
    const seen = await findRotation(request.context, request.caller, id)
    return confirm(request, {
      ask: 'Make a new secret for',
      name,
      loss: html`<p>The new secret is shown once. For 24 hours the previous one signs too, so that you have time to change the receiver.</p>`,
      button: 'Make a new secret',
      isDanger: false,
      back: `/channels/${id}`,
      fields: html`<input type="hidden" name="seen" value="${seen}">`,
    })
  }),
  action('/channels/{id}/rotate-secret', 'admin', async (request) => {
    const { context, caller, form } = request
    const channel = await findChangeable(request)
    // A browser that loads the response again posts the form again: that makes no other secret.
    const { secret } = await rotateSecret(context, caller, channel.id, form.get('seen') ?? undefined)
    return showSecret(channel, secret, 'The channel has a new secret. For 24 hours the previous one signs too.')
  }),
]

/** `what`: what has just happened. */
export function showSecret({ id, name }: Pick<ChannelRecord, 'id' | 'name'>, secret: string, what: string): Page {
  const main = html`<article class="confirm">
<h1>${isolated(name)}</h1>
<p role="status">${what}</p>
<p>With this secret the receiver verifies that a request comes from here. <strong>Copy it now: it is not shown again.</strong></p>
<p class="secret-line"><code id="secret">${secret}</code> ${copyButton('secret', 'the secret')}</p>
<form method="post" action="/channels/${id}/test" class="buttons">
<button type="submit">Send a test</button>
<a class="button secondary outline" href="/channels/${id}">Go to the channel</a>
</form>
</article>`
  return { kind: 'page', title: toOneLine(name), main }
}
