/**
 * A keeper and a sender over a real PostgreSQL, and Alertmanagers that behave as the real one does. The clock stands still; what is
 * exported is made anew for each test of a file that calls `useAlerts`.
 */

import { afterEach, beforeEach } from 'vitest'
import {
  type AlertKeeper,
  type AlertKeeperOptions,
  createAlertKeeper,
} from '../../../src/channels/kinds/alertmanager/keep-alerts.ts'
import { createAlertmanagerSender } from '../../../src/channels/kinds/alertmanager/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { openChannel } from '../../../src/channels/open-channel.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { CHANNEL_COLUMNS, type ChannelRow } from '../../../src/store/outbox/channels.ts'
import { aFlipEvent } from '../../support/events.ts'
import { createFakeAlertmanagers, type FakeAlertmanagers } from '../../support/fake-alertmanagers.ts'
import { addProject as addSeededProject, addTenant } from '../../support/tenant.ts'
import { type Fixture, useDelivery } from './fixture.ts'

export const [A, B] = ['a:9093', 'b:9093']
export const SETTINGS = { kind: 'alertmanager', urls: [`http://${A}`, `http://${B}`], labels: {} } as const
export const FOREVER = new AbortController().signal

export let fixture: Fixture
export let fakes: FakeAlertmanagers
/** A channel with both peers. */
export let channelId: string
/** The problems that keepers reported. */
export let problems: [channelId: string, problem: string][]
let keepers: AlertKeeper[]

export function useAlerts(): void {
  fixture = useDelivery()
  beforeEach(async () => {
    replaceFakes(fixture.clock.now)
    keepers = []
    problems = []
    channelId = await fixture.addChannel({ settings: SETTINGS })
  })
  afterEach(() => Promise.all(keepers.map((keeper) => keeper.stop())))
}

/** Replaces the fakes by others with another clock. */
export function replaceFakes(now: () => number): void {
  fakes = createFakeAlertmanagers(now)
}

const links = createLinks(() => 'https://heartbeat.example.com/api/v1')

export function createKeeper(overrides: Partial<AlertKeeperOptions> = {}): AlertKeeper {
  const keeper = createAlertKeeper({
    client: fakes,
    clock: fixture.clock,
    links,
    database: fixture.database,
    sealer: fixture.sealer,
    installationUrls: [],
    onProblem: (channel, problem) => problems.push([channel, problem]),
    ...overrides,
  })
  keepers.push(keeper)
  return keeper
}

/** A run of the keeper, and the work that it begins. */
export async function keep(keeper: AlertKeeper = createKeeper()): Promise<void> {
  await keeper.run(FOREVER)
  await keeper.stop()
}

/** As `keep`, this much later. */
export async function keepAfter(ms: number, keeper?: AlertKeeper): Promise<void> {
  await fixture.clock.advance(ms)
  await keep(keeper)
}

export async function addDown(input: Parameters<Fixture['addCheck']>[0] = {}): Promise<CheckRecord> {
  const check = await fixture.addCheck(input)
  await fixture.ping(check, { type: 'fail' })
  return check
}

/** Delivers an event of the check now. */
export async function deliver(check: CheckRecord, type: 'check.down' | 'check.up' = 'check.down', to = channelId) {
  const { rows } = await fixture.database.query<ChannelRow>(
    `select ${CHANNEL_COLUMNS} from channels c where c.id = $1`,
    [to],
  )
  const at = fixture.clock.now()
  const event = aFlipEvent({
    type,
    at,
    facts: { reason: 'failed', occurred_at: new Date(at).toISOString() },
    check: {
      id: check.id,
      slug: check.slug,
      labels: check.labels,
      project: { id: check.projectId, slug: 'test' },
      kubernetes: check.kubernetes,
    },
  })
  const context = { client: fakes, clock: fixture.clock, links, database: fixture.database }
  const channel = openChannel(rows[0]!, fixture.sealer, []) as never
  return createAlertmanagerSender(context)({ channel, event, checkKey: check.key }, FOREVER)
}

export async function raise(input: Parameters<Fixture['addCheck']>[0] = {}): Promise<CheckRecord> {
  const check = await addDown(input)
  await deliver(check)
  return check
}

export async function rows() {
  const { rows } = await fixture.database.query<{
    channel_id: string
    labels: Record<string, string>
    resolved_at: number | null
    tell_at: number
  }>('select channel_id, labels, resolved_at, tell_at from alerts order by check_key')
  return rows
}

export const lastAlerts = () => fakes.posts.at(-1)!.alerts
export const iso = (at: number) => new Date(at).toISOString()

export async function addProject(slug: string, isTheirs = false): Promise<string> {
  const owner = isTheirs ? await addTenant(fixture) : fixture.tenant()
  return addSeededProject(fixture, owner, slug)
}

export const nameOf = ({ labels }: { labels: Readonly<Record<string, string>> }) => labels.check

/** Inserts copies of an alert, of checks that do not exist. */
export async function copyAlert(key: number, count: number): Promise<void> {
  await fixture.database.query(
    `insert into alerts (channel_id, check_key, labels, annotations, starts_at, resolved_at, tell_at)
      select a.channel_id, a.check_key + n, a.labels || jsonb_build_object('check', 'copy-' || n), a.annotations, a.starts_at,
        a.resolved_at, a.tell_at
      from alerts a cross join generate_series(1, $2::int4) n where a.check_key = $1`,
    [key, count],
  )
}
