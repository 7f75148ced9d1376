import { expect, it } from 'vitest'
import {
  ALERT_LIFE_MS,
  buildAlert,
  buildTestAlert,
  fire,
  reannotateAlert,
  relabelAlert,
  resolve,
} from '../../../src/channels/kinds/alertmanager/alert.ts'
import { NOON, SECOND } from '../../support/builders.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'

const LINK = 'https://heartbeat.example.com/api/v1/checks/1'
const KUBERNETES = { cluster: 'default', namespace: 'shop-production', name: 'backup' }
/** What the check of `stored()` is called now. */
const NAMES = { id: '1', slug: 'nightly-backup', project: 'shop', kubernetes: null }
const stored = (event = aFlipEvent(), own = {}) => ({ ...buildAlert(event, own), resolvedAt: null })

it('labels the alert of a check of the API by its slug', () => {
  expect(buildAlert(aFlipEvent(), {}).labels).toEqual({
    alertname: 'HeartbeatCheckDown',
    check: 'nightly-backup',
    project: 'shop',
    reason: 'missed',
    severity: 'critical',
  })
})

it('labels the alert of a declared check by its resource', () => {
  expect(
    buildAlert(aFlipEvent({ check: { kubernetes: KUBERNETES }, facts: { reason: 'overran' } }), {}).labels,
  ).toEqual({
    alertname: 'HeartbeatCheckDown',
    namespace: 'shop-production',
    check: 'backup',
    project: 'shop',
    reason: 'overran',
    severity: 'critical',
  })
})

it("is overridden by the channel's labels", () => {
  expect(buildAlert(aFlipEvent(), { severity: 'warning', team: 'storage' }).labels).toMatchObject({
    alertname: 'HeartbeatCheckDown',
    severity: 'warning',
    team: 'storage',
  })
})

it.each([
  ['its own name', { team: 'shop' }, { team: 'shop' }],
  ['_ for other characters', { 'app.kubernetes.io/part-of': 'web' }, { app_kubernetes_io_part_of: 'web' }],
  ['our severity replaced', { severity: 'warning' }, { severity: 'warning' }],
  [
    'a prefix where the name is one of ours',
    { alertname: 'a', namespace: 'b', check: 'c', project: 'd', reason: 'e' },
    { label_alertname: 'a', label_namespace: 'b', label_check: 'c', label_project: 'd', label_reason: 'e' },
  ],
  ['a prefix where the name begins with a digit', { '2nd': 'x' }, { label_2nd: 'x' }],
  ['the value of the label that has the name as it is', { 'a-b': '1', a_b: '2', 'a.b': '3' }, { a_b: '2' }],
  ['the value of the first by name', { 'a.b': '1', 'a-b': '2' }, { a_b: '2' }],
  ['a prefixed name of its own', { check: '1', label_check: '2' }, { label_check: '2' }],
  ['nothing for a label without a value', { severity: '', team: '', 'a.b': '', 'a-b': '' }, {}],
  ['names that objects have', { constructor: 'a', 'to-string': 'b' }, { constructor: 'a', to_string: 'b' }],
])('has the labels of the check, with %s', (_, labels, expected) => {
  const event = aFlipEvent({ check: { kubernetes: KUBERNETES } })
  const ours = buildAlert(event, {}).labels
  expect(buildAlert(aFlipEvent({ check: { kubernetes: KUBERNETES, labels } }), {}).labels).toEqual({
    ...ours,
    ...expected,
  })
})

it('has no namespace of a check of the API, also by a label', () => {
  const { labels } = buildAlert(aFlipEvent({ check: { labels: { namespace: 'payments' } } }), {})
  expect(labels).toMatchObject({ label_namespace: 'payments' })
  expect(labels).not.toHaveProperty('namespace')
})

it("has a channel's labels before those of the check", () => {
  const event = aFlipEvent({ check: { labels: { severity: 'warning', team: 'shop', tier: 'gold' } } })
  expect(buildAlert(event, { severity: 'info', team: 'storage' }).labels).toMatchObject({
    severity: 'info',
    team: 'storage',
    tier: 'gold',
  })
})

it('describes the event and the output of the job', () => {
  const failed = aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing({ body: 'disk\u0000 full\r\nsorry' }) })
  expect(buildAlert(failed, {})).toMatchObject({
    annotations: {
      summary: 'Nightly backup is down',
      description: 'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
      body: 'disk full\nsorry',
    },
    startsAt: Date.UTC(2026, 10, 21, 3),
  })
})

it('breaks the control sequences of chat tools in the text of a later ping, too', () => {
  const alert = stored(aFlipEvent({ lastPing: aLastPing({ body: 'first' }) }))
  const { body, ...others } = reannotateAlert(alert, '<!channel> second')
  expect({ ...others, body: 'first' }).toEqual(alert.annotations)
  expect(body).toBe('<\u200b!channel> second')
  for (const text of [null, '', '\u001b[0m\n', 'first']) expect(reannotateAlert(alert, text)).toEqual(alert.annotations)
})

it('breaks the control sequences of chat tools in all texts', () => {
  const name = 'x <!channel> @HERE'
  const lastPing = aLastPing({ body: '<@U1> @channel @everyone <!here> <#C1> a@heron.example @all, <b>' })
  const { annotations } = buildAlert(aFlipEvent({ check: { name }, facts: { reason: 'failed' }, lastPing }), {})
  expect(annotations.summary).toBe('x <\u200b!channel> @\u200bHERE is down')
  expect(annotations.body).toBe(
    '<\u200b@\u200bU1> @\u200bchannel @\u200beveryone <\u200b!here> <\u200b#C1> a@heron.example @\u200ball, <b>',
  )
})

it.each([
  ['<https://evil.example.com|Pay here>', '<\u200bhttps://evil.example.com|Pay here>'],
  ['<MAILTO:a@evil.example.com|Ask>', '<\u200bMAILTO:a@evil.example.com|Ask>'],
  ['[Pay here](https://evil.example.com)', '[Pay here]\u200b(https://evil.example.com)'],
  ['[Pay here][1]', '[Pay here]\u200b[1]'],
  ['@bob, (@ann) _@ops_ @Ärzte', '@\u200bbob, (@\u200bann) _@\u200bops_ @\u200bÄrzte'],
  ['ann@example.com, x@everyone, a @ b', 'ann@example.com, x@\u200beveryone, a @ b'],
  ['see https://example.com/a (b) [c]: x < y', 'see https://example.com/a (b) [c]: x < y'],
])('breaks a link under other words: %s', (text, broken) => {
  const event = aFlipEvent({
    check: { name: text },
    facts: { reason: 'failed', detail: text },
    lastPing: aLastPing({ body: text }),
  })
  const { summary, description, body } = buildAlert(event, {}).annotations
  expect([summary, body]).toEqual([`${broken} is down`, broken])
  expect(description).toContain(broken)
})

it('has no annotation for the body of a job without output', () => {
  const { annotations } = buildAlert(aFlipEvent({ lastPing: aLastPing({ body: '' }) }), {})
  expect(Object.keys(annotations)).toEqual(['summary', 'description'])
})

it('fires from the flip until 15 minutes from now, and links to the check', () => {
  expect(fire(stored(), NOON, LINK)).toEqual({
    labels: stored().labels,
    annotations: stored().annotations,
    startsAt: '2026-11-21T03:00:00.000Z',
    endsAt: new Date(NOON + 15 * 60 * SECOND).toISOString(),
    generatorURL: LINK,
  })
  expect(ALERT_LIFE_MS).toBe(15 * 60 * SECOND)
})

it('ends 2 s early, never before its start, and without a link when the check was removed', () => {
  expect(resolve(stored(), NOON, null)).toEqual({
    labels: stored().labels,
    annotations: stored().annotations,
    startsAt: '2026-11-21T03:00:00.000Z',
    endsAt: new Date(NOON - 2 * SECOND).toISOString(),
  })
  expect(resolve(stored(), 0, LINK)).toMatchObject({ endsAt: '2026-11-21T03:00:00.000Z', generatorURL: LINK })
})

it('keeps its labels while the names of the check stay', () => {
  expect(relabelAlert(stored(), NAMES, {})).toEqual(stored().labels)
})

it.each([
  ['another slug', { slug: 'weekly-backup' }, {}, { check: 'weekly-backup' }],
  ['another project', { project: 'payments' }, {}, { project: 'payments' }],
  ['a resource', { kubernetes: KUBERNETES }, {}, { namespace: 'shop-production', check: 'backup' }],
  ['a channel with labels of its own', {}, { team: 'storage' }, { team: 'storage' }],
])('gets other labels with %s, but keeps its reason', (_, change, own, labels) => {
  const alert = stored(aFlipEvent({ facts: { reason: 'failed' } }))
  expect(relabelAlert(alert, { ...NAMES, ...change }, own)).toEqual({ ...alert.labels, ...labels })
})

it('loses a label that its channel does not have any more, and the namespace of a check without resource', () => {
  const alert = stored(aFlipEvent({ check: { kubernetes: KUBERNETES } }), { team: 'storage' })
  expect(relabelAlert(alert, NAMES, {})).toEqual(stored().labels)
})

it('keeps the labels that the check had when it began, under other names of the check and in other channels', () => {
  const alert = stored(aFlipEvent({ check: { labels: { team: 'shop', severity: 'info' } } }), { region: 'eu' })
  const { region, ...labels } = alert.labels
  expect(relabelAlert(alert, { ...NAMES, slug: 'weekly-backup' }, { tier: 'gold' })).toEqual({
    ...labels,
    check: 'weekly-backup',
    team: 'shop',
    severity: 'info',
    tier: 'gold',
  })
})

it('of a test ends by itself after a minute', () => {
  const now = aTestEvent.at + 5 * SECOND
  expect(buildTestAlert(aTestEvent, { severity: 'none', team: 'storage' }, now)).toMatchObject({
    labels: { alertname: 'HeartbeatTest', severity: 'none', team: 'storage' },
    annotations: { summary: 'A test of this channel' },
    startsAt: new Date(aTestEvent.at).toISOString(),
    endsAt: new Date(now + 60 * SECOND).toISOString(),
  })
  expect(buildTestAlert(aTestEvent, {}, now).labels).toEqual({ alertname: 'HeartbeatTest', severity: 'info' })
})

it('says what else is known of the check in annotations of their own, as harmless as the others', () => {
  const facts = { last_success_at: '2026-11-20T03:00:05.123Z', usual_ms: 754_000 }
  const event = aFlipEvent({ facts, check: { description: 'Ask @here' } })
  expect(buildAlert(event, {}).annotations).toEqual({
    summary: 'Nightly backup is down',
    description: 'No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
    details: 'Last success: 2026-11-20 03:00:05 UTC\nUsual duration: 12 min 34 s',
    about: 'Ask @\u200bhere',
  })
})
