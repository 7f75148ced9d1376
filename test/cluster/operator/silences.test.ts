/**
 * HeartbeatSilences on a real API server, with the rights of manifests/. The rules in detail:
 * test/operator/silences.test.ts; what they share with other resources: test/cluster/operator/declared.test.ts.
 */

import { expect, it } from 'vitest'
import { atIn, openSilencePlace, SUNDAYS } from '../../operator/silence-place.ts'
import { cluster } from '../../support/cluster.ts'
import { startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/until.ts'
import { use, useEach } from '../../support/use.ts'
import { useInstalled } from './stage.ts'

const scene = useInstalled({}, { ALLOWED_TARGETS: '127.0.0.1/32' })
const receiver = use(startReceiver)
const place = useEach(() => openSilencePlace(scene, receiver.url))

it('a silence holds, is seen in kubectl, and lets go of what is down when it is deleted', async () => {
  await place.checks.makeReady('backup', undefined, { labels: { tier: 'db' } })
  const checkSelector = { matchExpressions: [{ key: 'tier', operator: 'In', values: ['db', 'cache'] }] }
  await place.makeReady('work', { endsAt: atIn(600), comment: 'New disks', checkSelector })
  await place.makeReady('sundays', SUNDAYS)
  await place.fail('backup')
  expect((await place.sent('backup'))[0]).toMatch(/^check.down: suppressed, silenced/)
  const shown = await cluster.kubectl('-n', place.name, 'get', 'hbs')
  expect(shown).toMatch(/NAME\s+ACTIVE\s+UNTIL\s+NEXT\s+READY\s+COMMENT\s+AGE/)
  expect(shown).toMatch(/sundays\s+False\s+20\S+Z\s+True\s+Each Sunday/)
  expect(shown).toMatch(/work\s+True\s+20\S+Z\s+True\s+New disks/)
  await cluster.kubectl('-n', place.name, 'delete', 'hbs', 'work')
  await eventually('it is notified', async () => (await place.sent('backup')).includes('check.down: delivered'))
})
