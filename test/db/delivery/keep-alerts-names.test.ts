/** An Alertmanager identifies alerts by their labels: a check with other names has another alert. */

import { describe, expect, it } from 'vitest'
import { declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { retireCheck } from '../../../src/checks/declare/retire-check.ts'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { NO_TEXTS } from '../../../src/domain/check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import {
  A,
  addProject,
  B,
  channelId,
  deliver,
  fakes,
  fixture,
  iso,
  keep,
  keepAfter,
  lastAlerts,
  raise,
  rows,
  SETTINGS,
  useAlerts,
} from './alerts-fixture.ts'

useAlerts()

describe('the alert of a check', () => {
  const RESOURCE = { cluster: 'default', namespace: 'shop', name: 'backup' }
  const context = () => ({ database: fixture.database, clock: fixture.clock })
  const declare = (projectId = fixture.tenant().project, adoptId: string | null = null) =>
    declareCheck(context(), {
      resource: RESOURCE,
      projectId,
      name: 'Backup',
      ...NO_TEXTS,
      spec: { ...NO_SPEC, periodSeconds: 3_600, graceSeconds: 300 },
      suspend: null,
      adoptId,
    })

  async function raiseDeclared(): Promise<CheckRecord> {
    const { check } = await declare()
    await fixture.ping(check, { type: 'fail' })
    await deliver(check)
    return check
  }

  /** In one post, so that no notification reports a recovery in between. */
  function expectReplaced(before: object, after: object): void {
    const now = fixture.clock.now()
    const startsAt = Date.parse(lastAlerts()[0]!.startsAt)
    expect(lastAlerts()).toMatchObject([
      { labels: before, endsAt: iso(Math.max(now - 2 * SECOND, startsAt)) },
      { labels: after, endsAt: iso(now + 15 * MINUTE) },
    ])
    expect(lastAlerts()).toHaveLength(2)
    expect(lastAlerts()[1]!.startsAt).toBe(lastAlerts()[0]!.startsAt)
  }

  it('changes with its slug, at once', async () => {
    const check = await raise()
    await updateCheck(context(), fixture.tenant(), check.id, { slug: 'weekly-backup' })
    await keep()
    expectReplaced({ check: 'nightly-backup', reason: 'failed' }, { check: 'weekly-backup', reason: 'failed' })
    expect(fakes.firing(B)).toEqual(['weekly-backup'])
    expect(await rows()).toMatchObject([{ labels: { check: 'weekly-backup' }, resolved_at: null }])
  })

  it('changes with its project, at once', async () => {
    await raiseDeclared()
    await declare(await addProject('payments'))
    await keep()
    expectReplaced({ namespace: 'shop', project: 'test' }, { namespace: 'shop', check: 'backup', project: 'payments' })
  })

  it('changes when a resource adopts it, at once', async () => {
    const check = await raise()
    await declare(fixture.tenant().project, check.id)
    await keep()
    expectReplaced({ check: 'nightly-backup' }, { namespace: 'shop', check: 'backup' })
  })

  it('changes when its resource is detached, at once', async () => {
    await raiseDeclared()
    await retireCheck(context(), RESOURCE, 'Retain')
    await keep()
    expectReplaced({ namespace: 'shop', check: 'backup' }, { check: 'backup' })
    expect(lastAlerts()[1]!.labels).not.toHaveProperty('namespace')
  })

  it('ends when the check is removed, at once', async () => {
    const check = await raise()
    await removeCheck(context(), fixture.tenant(), check.id)
    await keep()
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
    expect(lastAlerts()[0]).not.toHaveProperty('generatorURL')
  })

  it('ends when its resource is deleted, at once', async () => {
    await raiseDeclared()
    await retireCheck(context(), RESOURCE, 'Delete')
    await keep()
    expect(fakes.firing(A)).toEqual([])
  })

  it("changes with the channel's own labels", async () => {
    await raise()
    const labels = { severity: 'warning', team: 'storage' }
    const { sealed, sealedWith } = fixture.sealer.seal(channelId, { ...SETTINGS, labels })
    await fixture.database.query('update channels set sealed = $1, sealed_with = $2', [sealed, sealedWith])
    await keepAfter(MINUTE)
    expectReplaced({ severity: 'critical' }, { severity: 'warning', team: 'storage' })
  })

  it('keeps the labels that its check had when it began, until it begins again', async () => {
    const check = await raise({ labels: { team: 'storage', severity: 'warning' } })
    const [began] = lastAlerts()
    expect(began!.labels).toMatchObject({ team: 'storage', severity: 'warning' })
    await updateCheck(context(), fixture.tenant(), check.id, { labels: { team: 'payments', tier: 'gold' } })
    await keepAfter(MINUTE)
    expect(lastAlerts().map(({ labels }) => labels)).toEqual([began!.labels])

    const { slug } = await updateCheck(context(), fixture.tenant(), check.id, { slug: 'weekly-backup' })
    await keep()
    expectReplaced(began!.labels, { ...began!.labels, check: slug })

    const changed = { ...check, slug, labels: { team: 'payments', tier: 'gold' } }
    await fixture.clock.advance(MINUTE)
    await deliver(changed, 'check.up')
    expect(lastAlerts().map(({ labels }) => labels)).toEqual([{ ...began!.labels, check: slug }])
    await deliver(changed)
    expect(fakes.posts.at(-1)!.alerts.at(-1)!.labels).toMatchObject({
      team: 'payments',
      tier: 'gold',
      severity: 'critical',
    })
    await keepAfter(MINUTE)
    expect(lastAlerts().at(-1)!.labels).toMatchObject({ team: 'payments', tier: 'gold', severity: 'critical' })
  })

  it('keeps its labels until a peer has accepted the new ones', async () => {
    const check = await raise()
    await updateCheck(context(), fixture.tenant(), check.id, { slug: 'weekly-backup' })
    fakes.answer(A, 'refuse')
    fakes.answer(B, 'refuse')
    await keep()
    expect(await rows()).toMatchObject([{ labels: { check: 'nightly-backup' } }])
    fakes.answer(A, 200)
    await keepAfter(10 * SECOND)
    expect(fakes.firing(A)).toEqual(['weekly-backup'])
  })
})
