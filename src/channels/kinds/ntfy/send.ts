import { fieldsOf, type Judge, rejectFor, retryIn } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import { below } from '../server-fields.ts'
import { NTFY_URL, type NtfySettings } from './config.ts'
import { type NtfyMessage, renderDigest, renderMessage } from './message.ts'

/** What is wrong with the channel, by `code` (`server/errors.go` of ntfy). */
const FAULTS: Readonly<Record<number, string>> = {
  40009: 'choose another topic',
  40010: 'choose another topic: the server has reserved this one for itself',
  40101: 'the token, or the password in url, is not valid or has expired: make another token in the account of ntfy',
  40301: 'the topic may not be written to: give the token the right to write, or give a token',
  40401: 'url must be the address of an ntfy server',
}
/** The quota of messages of a day, which begins at midnight UTC. The other limits refill by the second. */
const DAILY_QUOTA = 42908
const DAILY_WAIT_MS = 3_600_000

const judge: Judge = (response, outcome) => {
  const code = Number(fieldsOf(response).code)
  if (code === DAILY_QUOTA) return retryIn(outcome, DAILY_WAIT_MS)
  const fault = FAULTS[code]
  return fault === undefined ? outcome : rejectFor(outcome, fault)
}

export const createNtfySender = createMessageSender<NtfySettings, NtfyMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf: ({ url = NTFY_URL, token }) => ({
    url: below(url, '/'),
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` }, secrets: [token] }),
  }),
  judge,
})
