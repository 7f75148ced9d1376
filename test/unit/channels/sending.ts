/** What the tests of kinds with messages share: an event with all that can be known, and outcomes of responses. */

import type { Links, SenderContext } from '../../../src/channels/kinds/kind.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import type { HttpResponse } from '../../../src/delivery/http.ts'
import type { Outcome, Sender } from '../../../src/delivery/outcome.ts'
import type { ChannelSettings } from '../../../src/domain/channel.ts'
import { aDigest, aFlipEvent, aLastPing, manyFlipEvents } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'

export const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
export const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002'
/** Of an installation that only its own network reaches. */
export const inside: Links = createLinks(() => 'http://heartbeat:8080/api/v1', true)

export const everything = aFlipEvent({
  facts: { reason: 'failed', last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 },
  check: {
    name: 'Shop <backup>',
    description: 'Runbook: https://wiki.example.com/backup?a&b\nCall @ann',
    kubernetes: { cluster: 'default', namespace: 'shop', name: 'backup' },
  },
  lastPing: aLastPing({ body: 'pg_dump: "shop" & <all>\ndisk full' }),
})

export const anUp = aFlipEvent({ type: 'check.up', facts: { status: 'up', down_for_seconds: 7_500, missed_runs: 2 } })

/** 20 checks are down, one is up again. */
export const crowd = aDigest(
  manyFlipEvents(21, (number) => (number > 20 ? { type: 'check.up', facts: { down_for_seconds: 60 } } : {})),
)

type Create<Settings extends ChannelSettings> = (context: SenderContext) => Sender<Settings>

/** Sends `everything`, and returns the request and the outcome of this response. */
export async function sendTo<Settings extends ChannelSettings>(
  create: Create<Settings>,
  settings: Settings,
  response: Partial<Omit<HttpResponse, 'text'>> & { readonly json?: unknown; readonly text?: string } = {},
) {
  const { json, ...rest } = response
  const client = createFakeHttpClient({ ...rest, ...(json === undefined ? {} : { text: JSON.stringify(json) }) })
  const context = { client, clock: createManualClock(), links } as unknown as SenderContext
  const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Team chat', isTrusted: false, settings }
  const send = create(context)
  const { signal } = new AbortController()
  const outcome: Outcome = await send({ channel, event: everything, checkKey: 1 }, signal)
  await send.sendDigest!({ channel, digest: crowd }, signal)
  return { outcome, request: client.requests[0]!, digestRequest: client.requests[1]! }
}
