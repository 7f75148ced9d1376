import { sendForOutcome } from '../../../delivery/http-outcome.ts'
import type { Send } from '../../../delivery/outcome.ts'
import type { SenderContext } from '../kind.ts'
import type { SlackSettings } from './config.ts'
import { renderMessage } from './message.ts'

type Context = Pick<SenderContext, 'client' | 'clock' | 'links'>

export function createSlackSender({ client, clock, links }: Context): Send<SlackSettings> {
  return ({ channel: { settings, isTrusted }, event }, signal) => {
    const body = JSON.stringify(renderMessage(event, links))
    const headers = { 'content-type': 'application/json' }
    return sendForOutcome(client, { method: 'POST', url: settings.url, headers, body, isTrusted }, signal, clock)
  }
}
