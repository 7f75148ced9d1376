import { z } from 'zod'
import { rule } from '../../../domain/errors.ts'
import { configOf, hideAll, hideCredentials } from '../fields.ts'
import type { KindConfig } from '../kind.ts'
import { bearerToken, revealServer, serverUrl, tokenField } from '../server-fields.ts'

interface MatrixConfig {
  readonly homeserver: string
  readonly room_id: string
  readonly token: string
}
export type MatrixSettings = MatrixConfig & { readonly kind: 'matrix' }

/** Since room version 12 an id has no server (Matrix specification, Appendices, "Room IDs": at most 255 bytes). */
const ROOM_ID = /^![\x21-\x7e]{1,254}$/
const ROOM_RULE = rule(
  'must be the id of a room, which begins with !, such as !abcdefg:example.com; not an alias, which begins with #. Element shows the id in the settings of the room, under Advanced',
)

export const matrixConfig: KindConfig<MatrixSettings, MatrixConfig, MatrixConfig> = {
  title: 'Matrix',
  purpose: 'A message in a Matrix room, not encrypted.',
  form: [
    {
      name: 'homeserver',
      label: 'Homeserver',
      meaning:
        'The address of the client API of the server of the user who sends. Later it is shown with … instead of credentials.',
      example: 'https://matrix.example.com',
      isSecret: true,
    },
    {
      name: 'room_id',
      label: 'Room',
      meaning: 'Its internal id, from the settings of the room, under Advanced. The user must be in the room.',
      example: '!abcdefg:example.com',
    },
    tokenField({
      label: 'Access token',
      meaning: 'Of a user of its own for this service.',
      example: 'syt_aGVhcnRiZWF0_XXXXXXXXXXXXXXXXXXXX_000000',
    }),
  ],
  input: configOf({
    homeserver: serverUrl('The address of the client API of the homeserver, below which /_matrix is'),
    room_id: z.string(ROOM_RULE).regex(ROOM_ID, ROOM_RULE).meta({ description: 'The id of the room, not an alias.' }),
    token: bearerToken('The access token of the user who sends'),
  }),
  shown: z.object({ homeserver: z.string(), room_id: z.string(), token: z.string() }),

  toSettings({ homeserver: shown, room_id, token: hidden }, stored) {
    const kept = stored === null ? null : { url: stored.homeserver, token: stored.token }
    const { url: homeserver, token } = revealServer({ url: shown, token: hidden }, kept, 'homeserver')
    return { kind: 'matrix', homeserver, room_id, token }
  },
  show: ({ homeserver, room_id, token }) => ({
    homeserver: hideCredentials(homeserver),
    room_id,
    token: hideAll(token),
  }),
  urlsOf: ({ homeserver }) => [{ url: homeserver, field: 'homeserver' }],
  inSecret: { field: 'token' },
}
