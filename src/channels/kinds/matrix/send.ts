import { fieldsOf, type Judge, rejectFor, retryIn } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import { below } from '../server-fields.ts'
import type { MatrixSettings } from './config.ts'
import { type MatrixMessage, renderDigest, renderMessage } from './message.ts'

/**
 * What is wrong with the channel, by `errcode` (Matrix specification, Client-Server API, "Standard error response").
 */
const FAULTS: Readonly<Record<string, string>> = {
  M_UNKNOWN_TOKEN: 'the token is not valid or was logged out: log in again and give the new one',
  M_MISSING_TOKEN: 'the homeserver got no token: check for a proxy before it',
  M_USER_DEACTIVATED: 'the user of the token is deactivated: give the token of another one',
  M_FORBIDDEN:
    'the user of the token may not send there: invite the user to the room, accept the invitation, and let the user send messages',
  M_NOT_FOUND: 'check room_id',
  M_INVALID_PARAM: 'check room_id',
  M_UNRECOGNIZED: 'homeserver must be the address of the client API of a homeserver',
}

const judge: Judge = (response, outcome) => {
  const { errcode, retry_after_ms: ms } = fieldsOf(response)
  if (typeof errcode !== 'string') return outcome
  // Homeservers give it beside Retry-After, those before version 1.10 of the specification instead of it.
  if (response.status === 429) return typeof ms === 'number' ? retryIn(outcome, ms) : outcome
  const fault = FAULTS[errcode]
  return fault === undefined ? outcome : rejectFor(outcome, fault)
}

export const createMatrixSender = createMessageSender<MatrixSettings, MatrixMessage>({
  renderEvent: renderMessage,
  renderDigest,
  // Repeated with the same id, it is one message ("Transaction identifiers").
  requestOf: ({ homeserver, room_id, token }, _, id) => ({
    method: 'PUT',
    url: below(
      homeserver,
      `/_matrix/client/v3/rooms/${encodeURIComponent(room_id)}/send/m.room.message/${encodeURIComponent(id)}`,
    ),
    headers: { authorization: `Bearer ${token}` },
    secrets: [token],
  }),
  judge,
})
